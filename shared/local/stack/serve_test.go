package stack_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/stack"
)

// Close must not wait for a connection on which the client never sent a request.
func TestCloseEndsUnusedConnections(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: "demokey"}}})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// An answer on a later connection shows that the server has accepted this one.
	if code, answer := call(t, s, "GET", "/healthz", ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, answer)
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Server.Shutdown alone takes more than five seconds.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("closed in %v, want less than 4 s", took)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read from the connection: %v, want the end of it", err)
	}
}
