package stack_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// The nightly round is for every app, for one app, or for all but those with their
// own schedule.
func TestAppsOfTheNightlyRound(t *testing.T) {
	for _, test := range []struct {
		body  string
		code  int
		apps  string // apps with a job afterwards
		words string
	}{
		{``, 200, "a", `{"apps":3}`}, // b and c follow within the hour
		{`{"spread":"1ms"}`, 200, "a b c", `{"apps":3}`},
		{`{"spread":"0s"}`, 200, "a b c", ``},
		{`{"app":"b"}`, 200, "b", `{"apps":1}`},
		{`{"except":["b","c"],"spread":"1h"}`, 200, "a", `{"apps":1}`},
		{`{"except":["gone"],"spread":"0s"}`, 200, "a b c", ``},
		{`{"app":"d"}`, 404, "", `No app \"d\"`},
		{`{"app":"a","except":["b"]}`, 422, "", `cannot both`},
		{`{"apps":["a"]}`, 422, "", `unknown field`},
		{`{"spread":"yes"}`, 422, "", `spread must be a duration`},
		{`{`, 422, "", `must be empty`},
	} {
		t.Run(test.body, func(t *testing.T) {
			s := start(t, stack.Options{Apps: []stack.App{{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "c", Key: "k"}}})
			w := httptest.NewRecorder()
			worker.New(s.Backends.ForWorker()).ServeHTTP(w, httptest.NewRequest("POST", "/nightly", strings.NewReader(test.body)))
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.words) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			idle(t, s) // which waits for no task of later
			poll(t, time.Minute, func() (string, bool) {
				var has []string
				for _, app := range []string{"a", "b", "c"} {
					jobs, err := s.Backends.JobStore(recompute.Collection).List(t.Context(), app, 1)
					must.Succeed(t, err)
					if len(jobs) == 1 {
						has = append(has, app)
					}
				}
				got := strings.Join(has, " ")
				return fmt.Sprintf("jobs of %q, want of %q", got, test.apps), got == test.apps
			})
		})
	}
}
