package stack

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What may have changed something is answered after a sync, and with success only if that succeeds.
func TestAnswersWaitForTheDisk(t *testing.T) {
	for _, test := range []struct {
		method, path string
		status       int // 0: that of an answer without one
		syncs        bool
	}{
		{"POST", "/1/events", 200, true}, {"POST", "/1/events", 0, true}, {"POST", "/v1/batch", 200, true},
		{"PUT", "/1/consents/ann", 200, true}, {"DELETE", "/1/profiles/ann", 200, true},
		{"POST", "/local/apps", 201, true}, {"POST", "/console/strategy", 303, true},
		{"POST", "/local/apps", 409, true}, {"DELETE", "/1/feeds/home", 404, true}, // an earlier request may have done it
		{"POST", "/1/events", 401, false}, {"POST", "/1/events", 403, false}, {"POST", "/1/events", 429, false},
		{"POST", "/1/events", 503, false}, {"GET", "/1/profiles/ann", 200, false}, {"OPTIONS", "/1/events", 204, false},
		{"POST", "/1/rank", 200, false}, {"POST", "/1/profiles/batch", 200, false},
	} {
		for _, broken := range []error{nil, errors.New("the disk is away")} {
			syncs := 0
			w := httptest.NewRecorder()
			durable(func() error {
				if syncs++; len(w.Body.Bytes()) > 0 || w.Flushed {
					t.Errorf("%s %s is answered before its sync", test.method, test.path)
				}
				return broken
			}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if test.status != 0 {
					w.WriteHeader(test.status)
					_, _ = w.Write([]byte("body"))
				}
			})).ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
			want := test.status
			if want == 0 {
				want = http.StatusOK
			}
			if test.syncs && broken != nil {
				want = http.StatusServiceUnavailable
			}
			if (syncs > 0) != test.syncs || syncs > 1 || w.Code != want {
				t.Errorf("%s %s with %d: %d syncs and %d, want %v and %d", test.method, test.path, test.status, syncs, w.Code,
					test.syncs, want)
			}
		}
	}
}
