package stack_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Close must not wait for a connection on which the client never sent a request.
func TestCloseEndsUnusedConnections(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: "demokey"}}})
	must.Succeed(t, err)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	must.Succeed(t, err)
	defer conn.Close()
	// An answer on a later connection shows that the server has accepted this one.
	wantStatus(t, s, http.StatusOK, "GET", "/health", "")
	began := time.Now()
	must.Succeed(t, s.Close())
	// Server.Shutdown alone takes more than five seconds.
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("closed in %v, want less than 4 s", took)
	}
	must.Succeed(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read from the connection: %v, want the end of it", err)
	}
}
