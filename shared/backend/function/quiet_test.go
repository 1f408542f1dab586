package function_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/local/must"
)

// On Cloud Run the framework writes empty lines, which Logging may bill. Only the first
// request of a process does.
func TestRequestsWriteNoEmptyLines(t *testing.T) {
	const child = "FUNCTION_TEST_QUIET"
	if os.Getenv(child) != "" {
		serveThrice(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1", "K_SERVICE=quiet", "FUNCTION_TARGET=Quiet")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	empty := 0
	for line := range strings.Lines(string(out)) {
		if line == "\n" {
			empty++
		}
	}
	if empty > 2 {
		t.Errorf("three requests wrote %d empty lines, want at most the first one's two:\n%q", empty, out)
	}
}

// serveThrice serves three requests as a deployed function does.
func serveThrice(t *testing.T) {
	function.Register("Quiet", func(context.Context, *slog.Logger, struct{}) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	must.Succeed(t, l.Close())
	ended := make(chan error, 1)
	go func() { ended <- funcframework.StartHostPort("127.0.0.1", port) }() // until the process ends
	for answered := 0; answered < 3; {
		res, err := http.Post("http://127.0.0.1:"+port, "", nil)
		if err == nil {
			answered++
			if res.Body.Close(); res.StatusCode != http.StatusNoContent {
				t.Errorf("got %d", res.StatusCode)
			}
			continue
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		default: // not listening yet
		}
	}
}
