package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestExportCommand(t *testing.T) {
	s := startEngine(t, stack.Options{RetentionDays: 90})
	events := file(t, "events.ndjson", `{"eventType":"view","eventName":"Seen","userToken":"ann","index":"i","filters":["color:Red"]}`)
	affinity(t, "", "import", "--url", s.URL, events).wants(t, cli.ExitOK)
	out := filepath.Join(t.TempDir(), "ann.ndjson")
	affinity(t, "", "export", "ann", "--url", s.URL, "--out", out).wants(t, cli.ExitOK, "complete: 1 event")
	affinity(t, "", "import", "--url", s.URL, out).wants(t, cli.ExitOK)
	r := affinity(t, "", "export", "ann", "--url", s.URL)
	r.wants(t, cli.ExitOK, `{"exportEnd":{"events":1,"faults":0}}`, `"filters":[["color","Red",1]]`)
	affinity(t, "", "export", "nobody", "--url", s.URL).wants(t, cli.ExitFailed, "export user nobody", "404 No profile")
	affinity(t, "", "export", "--url", s.URL).wants(t, cli.ExitUsage)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(r.out[:strings.LastIndex(r.out, `{"exportEnd"`)]))
	}))
	defer server.Close()
	affinity(t, "", "export", "ann", "--url", server.URL, "--out", out).wants(t, cli.ExitFailed, "cut off", "1 event arrived")
	affinity(t, "", "import", "--url", s.URL, out).wants(t, cli.ExitOK) // the events that arrived
}
