package stack_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// smallDisk is a disk of 10 GB with a given room in MB.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load() << 20, TotalBytes: 10 << 30}, nil
}

// A disk that is nearly full takes no events, and all else: 128 MB are left for it, and 128 MB and 2 % of the
// disk for compactions and what is accepted.
func TestNearlyFullDiskRefusesEvents(t *testing.T) {
	files := &smallDisk{FS: vfs.NewMem()}
	files.free.Store(1000)
	folder := t.TempDir()
	must.Succeed(t, files.MkdirAll(folder, 0o700))
	s := serving(t, stack.Options{Data: folder, Files: files, Sync: true})
	own, shop := s.operators(), credentials("shop", ownKey)
	send := func(method, path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		must.Succeed(t, err)
		r.Header.Set(shop[0], shop[1])
		r.Header.Set(shop[2], shop[3])
		answer, err := http.DefaultClient.Do(r)
		must.Succeed(t, err)
		must.Succeed(t, answer.Body.Close())
		return answer
	}
	const event = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","filters":["brand:Nike"]}`
	for _, step := range []struct {
		free          uint64
		events, ready int
	}{{1000, 200, 200}, {460, 503, 503}, {462, 200, 200}, {200, 503, 503}, {1000, 200, 200}} {
		files.free.Store(step.free)
		for _, path := range []string{"/1/events", "/1/events/import?index=i"} {
			body := event
			if path == "/1/events" {
				body = `{"events":[` + event + `]}`
			}
			got := send("POST", path, body)
			if got.StatusCode != step.events || (got.Header.Get("Retry-After") != "") != (step.events == 503) {
				t.Errorf("with %d MB of room, %s answers %d, Retry-After %q, want %d", step.free, path, got.StatusCode,
					got.Header.Get("Retry-After"), step.events)
			}
		}
		for path, want := range map[string]int{"DELETE /1/profiles/bob": 200, "GET /1/events/recent": 200,
			"PUT /1/optouts/bob": 200, "GET /1/usertokens": 200} {
			method, path, _ := strings.Cut(path, " ")
			if got := send(method, path, ""); got.StatusCode != want {
				t.Errorf("with %d MB of room, %s %s answers %d, want %d", step.free, method, path, got.StatusCode, want)
			}
		}
		code, text := get(t, own, "http://localhost/readyz")
		if code != step.ready || (code == 503) != strings.Contains(text, "the disk of this engine is nearly full: ") {
			t.Errorf("with %d MB of room, /readyz answers %d %s, want %d", step.free, code, text, step.ready)
		}
	}
}
