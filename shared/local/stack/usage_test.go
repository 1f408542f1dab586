package stack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// Requests of all kinds are counted in the app's day, and no other app's.
func TestUsageByRequests(t *testing.T) {
	s := start(t, stack.Options{})
	event := func(user string) string {
		return fmt.Sprintf(`{"eventType":"view","eventName":"Seen","userToken":%q,"index":"i","filters":["color:Red"]}`, user)
	}
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/1/events", `{"events":[` + event("ann") + `,` + event("ann") + `,` + event("bob") + `]}`, 200},
		{"POST", "/1/events", `{"events":[` + event("ann") + `,{}]}`, 422},
		{"POST", "/1/events/import", event("ann") + "\nbad\n", 200},
		{"GET", "/1/profiles/ann", "", 200},
		{"GET", "/1/profiles/not%20valid", "", 422},
		{"GET", "/1/profiles/personalization/ann", "", 200},
		{"GET", "/1/explain/ann", "", 200},
		{"POST", "/1/profiles/batch", `{"userTokens":["ann","bob","nobody"]}`, 200},
	} {
		if strings.HasPrefix(r.path, "/1/profiles") {
			idle(t, s)
		}
		if status, answer := call(t, s, r.method, r.path, r.body); status != r.status {
			t.Fatalf("%s %s: %d %s", r.method, r.path, status, answer)
		}
	}
	must.Succeed(t, s.Backends.Usage.Flush(t.Context()))
	var answer api.Usage
	getJSON(t, s, "/1/usage", &answer)
	if len(answer.Days) != api.DefaultUsageDays || answer.Days[len(answer.Days)-1].Day != answer.To {
		t.Errorf("the answer has %d days up to %s", len(answer.Days), answer.To)
	}
	got := answer.Total
	if got.Rows < 10 || got.Bytes < got.Rows*10 {
		t.Errorf("%d rows of %d bytes", got.Rows, got.Bytes)
	}
	got.Rows, got.Bytes = 0, 0
	if want := (api.UsageCounts{Events: 4, RefusedEvents: 2, Reads: 6}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	var none api.Usage
	getJSON(t, s, "/1/usage?from=9999-12-30&to=9999-12-31", &none)
	if len(none.Days) != 2 || none.Total != (api.UsageCounts{}) {
		t.Errorf("the last days of all are %+v", none)
	}
	for _, query := range []string{"from=yesterday", "to=2026-02-30", "from=2026-11-22&to=2026-11-21", "from=2020-01-01", "day=1"} {
		if status, answer := call(t, s, "GET", "/1/usage?"+query, ""); status != 422 {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
	checkTop(t, s)
}

// checkTop compares what the operator sees.
func checkTop(t *testing.T, s *stack.Stack) {
	t.Helper()
	today := usage.DayOf(s.Backends.Now())
	top, err := usage.Top(t.Context(), s.Backends.Store.Usage, []string{"demo", "other"}, today-1, today)
	must.Succeed(t, err)
	if len(top) != 2 || top[0].App != "demo" || top[0].Events != 4 || top[1].Events != 0 {
		t.Fatalf("top is %+v", top)
	}
	if hottest := top[0].Hottest; hottest == nil || *hottest != (usage.User{Token: "ann", Events: 3}) {
		t.Errorf("the hottest user is %+v", hottest)
	}
	last, err := s.Backends.Store.Usage.LastUsed(t.Context(), "demo")
	must.Succeed(t, err)
	if day := last[auth.Hash("demokey")]; len(last) != 1 || day < today-1 || day > today {
		t.Errorf("keys were last used %v, today is %s", last, today)
	}
}
