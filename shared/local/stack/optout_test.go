package stack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// A user opts out while events of theirs are on their way. Every read answers as for an
// unknown user from the answer on, and the purge leaves nothing. Opting in brings nothing
// back, and what follows counts.
func TestOptOutWhileEventsAreInFlight(t *testing.T) {
	s := start(t, stack.Options{})
	ask := func(method, path, body string, want int) string {
		t.Helper()
		code, answer := call(t, s, method, path, body)
		if code != want {
			t.Fatalf("%s %s: %d %s", method, path, code, answer)
		}
		return answer
	}
	ask("POST", "/1/strategies/personalization", seenStrategy, http.StatusOK)
	event := `{"events":[` + seenIn + `]}`
	unknown := func() {
		t.Helper()
		for _, read := range []string{"/1/profiles/u", "/1/profiles/u?consistency=strong", "/1/profiles/personalization/u"} {
			ask("GET", read, "", http.StatusNotFound)
		}
		if answer := ask("POST", "/1/profiles/batch", `{"userTokens":["u"]}`, http.StatusOK); !strings.Contains(answer, `"notFound":["u"]`) {
			t.Errorf("a batch answers %s", answer)
		}
		if answer := ask("GET", "/1/explain/u", "", http.StatusOK); !strings.Contains(answer, `"known":false`) {
			t.Errorf("an explanation answers %s", answer)
		}
		if answer := ask("POST", "/1/rank", `{"userToken":"u","index":"i","objectIDs":["1"]}`, http.StatusOK); !strings.Contains(answer, `"fallback":"catalog"`) {
			t.Errorf("a ranking answers %s", answer)
		}
		if answer := ask("GET", "/1/boosts/u?engine=algolia", "", http.StatusOK); !strings.Contains(answer, `"affinities":[],"query":{},"dropped":[]`) {
			t.Errorf("a boost answers %s", answer)
		}
	}
	var senders sync.WaitGroup
	for range 3 {
		senders.Go(func() {
			for range 5 {
				if code, answer := call(t, s, "POST", "/1/events", event); code != http.StatusOK {
					t.Error(code, answer)
				}
			}
		})
	}
	if answer := ask("PUT", "/1/optouts/u", "", http.StatusOK); !strings.Contains(answer, `"eventTypes":["view","click","conversion"]`) {
		t.Errorf("opting out answers %s", answer)
	}
	unknown()
	senders.Wait()
	const after = 3
	for range after {
		ask("POST", "/1/events", event, http.StatusOK) // accepted, and dropped
	}
	idle(t, s)
	unknown()
	var list api.RefusedEvents
	if err := json.Unmarshal([]byte(ask("GET", "/1/events/refused", "", http.StatusOK)), &list); err != nil || list.Counts[refused.OptedOut] < after || len(list.Refused) > 0 {
		t.Errorf("refused %+v, %v; want %d at least, without events", list, err, after)
	}
	app, err := s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	all := []store.UserRange{{User: "u", To: history.End}}
	err = s.Backends.Store.Events.ReadLog(t.Context(), "demo", app.Log, all, func(_ string, row store.LogRow) error { return fmt.Errorf("event of %d", row.Time) })
	if err != nil {
		t.Errorf("the log holds an %v, want none", err)
	}

	var in api.OptOut
	if err := json.Unmarshal([]byte(ask("DELETE", "/1/optouts/u", "", http.StatusOK)), &in); err != nil || in.OptedOut || in.DeletedUntil == nil {
		t.Fatalf("opting in answers %+v, %v", in, err)
	}
	unknown()
	for !s.Backends.Now().After(in.DeletedUntil.Add(time.Millisecond)) {
		<-time.After(time.Millisecond)
	}
	ask("POST", "/1/events", event, http.StatusOK)
	idle(t, s)
	var p api.Profile
	if err := json.Unmarshal([]byte(ask("GET", "/1/profiles/u", "", http.StatusOK)), &p); err != nil || len(p.Affinities) != 1 {
		t.Fatalf("profile %+v, %v; want one affinity", p, err)
	}
	one := p.Affinities[0].Score

	ask("PUT", "/1/optouts/u", `{"eventTypes":["click"]}`, http.StatusOK)
	unknown()
	must.Succeed(t, json.Unmarshal([]byte(ask("GET", "/1/optouts/u", "", http.StatusOK)), &in))
	for !s.Backends.Now().After(in.DeletedUntil.Add(time.Millisecond)) {
		<-time.After(time.Millisecond)
	}
	ask("POST", "/1/events", `{"events":[`+seenIn+`,`+strings.Replace(seenIn, `"view"`, `"click"`, 1)+`]}`, http.StatusOK)
	idle(t, s)
	if err := json.Unmarshal([]byte(ask("GET", "/1/profiles/u", "", http.StatusOK)), &p); err != nil || len(p.Affinities) != 1 || p.Affinities[0].Score != one {
		t.Errorf("profile %+v, %v; want that of one view", p, err)
	}
	if log := ask("GET", "/1/audit-log?action=optout.set&userToken=u", "", http.StatusOK); !strings.Contains(log, `"detail":"click"`) || !strings.Contains(log, `"detail":"view, click, conversion"`) {
		t.Errorf("the audit log has %s", log)
	}
	x := ask("GET", "/1/explain/u", "", http.StatusOK)
	if !strings.Contains(x, `"accepted":1`) {
		t.Errorf("an explanation answers %s, want one event in the log", x)
	}
}
