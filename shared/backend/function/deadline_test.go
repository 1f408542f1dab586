package function_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/affinityengine/affinity/shared/local/must"
)

// The framework's server passes the deadline for a request's body on to the
// connection.
func TestFrameworkKnowsReadDeadlines(t *testing.T) {
	functions.HTTP("Deadline", func(w http.ResponseWriter, r *http.Request) {
		set := http.NewResponseController(w).SetReadDeadline(time.Now().Add(-time.Second))
		_, read := io.ReadAll(r.Body)
		fmt.Fprint(w, set, errors.Is(read, os.ErrDeadlineExceeded))
	})
	t.Setenv("FUNCTION_TARGET", "Deadline")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	must.Succeed(t, l.Close())
	ended := make(chan error, 1)
	go func() { ended <- funcframework.StartHostPort("127.0.0.1", port) }() // until the process ends
	for {
		unsent, client := io.Pipe() // a body that does not arrive
		res, err := http.Post("http://127.0.0.1:"+port, "", unsent)
		_ = client.Close()
		if err == nil {
			defer res.Body.Close()
			if answer, err := io.ReadAll(res.Body); err != nil || string(answer) != "<nil> true" {
				t.Errorf("%q, %v; want no error and a body that ends at its deadline", answer, err)
			}
			return
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		default: // not listening yet
		}
	}
}
