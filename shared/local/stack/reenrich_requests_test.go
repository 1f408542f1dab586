package stack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/store"
)

// metrics returns the metrics of an engine.
func metrics(t *testing.T, s *stack.Stack) string {
	t.Helper()
	status, text := scrape(s, "[::1]:1234")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics: %d %s", status, text)
	}
	return text
}

// scrape asks for the metrics from an address.
func scrape(s *stack.Stack, from string) (int, string) {
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	s.Metrics().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Other machines do not read the metrics.
func TestMetricsAreForThisMachine(t *testing.T) {
	s := start(t, stack.Options{})
	for from, want := range map[string]int{"127.0.0.1:1234": 200, "[::1]:1234": 200, "192.0.2.1:1234": 403, "[2001:db8::1]:1234": 403, "": 403} {
		if status, text := scrape(s, from); status != want {
			t.Errorf("from %q: %d %s, want %d", from, status, text, want)
		}
	}
}

func TestEventsWithUnknownObjectsAreCounted(t *testing.T) {
	s := start(t, stack.Options{})
	save(t, s, "i", `{"objectID":"1","color":"Red"}`)
	event := func(user, objects string) string {
		return `{"eventType":"view","eventName":"Seen","index":"i","userToken":"` + user + `","objectIDs":[` + objects + `]}`
	}
	ok(t, s, "/1/events", `{"events":[`+event("u", `"1"`)+`,`+event("u", `"1","2"`)+`,`+event("u", `"2","3"`)+`]}`)
	ok(t, s, "/1/events/import", event("v", `"2"`)+"\n"+event("v", `"1"`))
	idle(t, s)
	if text := metrics(t, s); !strings.Contains(text, "\naffinity_events_with_unknown_objects_total 3\n") {
		t.Errorf("want 3 events with unknown objects:\n%s", text)
	}
}

func TestReenrichRequests(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Hour}) // no job begins before the test is over
	for body, want := range map[string]int{`{"dryRun":1}`: 422, `{"dry":true}`: 422, `[]`: 422, `null`: 422, `{`: 400} {
		if code, answer := call(t, s, "POST", "/1/reenrich", body); code != want {
			t.Errorf("%s: %d %s, want %d", body, code, answer, want)
		}
	}
	code, answer := call(t, s, "POST", "/1/reenrich", `{"dryRun":true}`)
	first := decodeReenriched(t, code, answer)
	if first.State != "planning" || !first.DryRun {
		t.Errorf("started %s", answer)
	}
	code, answer = call(t, s, "POST", "/1/reenrich", "")
	if second := decodeReenriched(t, code, answer); second.ID != first.ID || !second.DryRun {
		t.Errorf("a second start is answered with %s, want the one under way", answer)
	}
	if code, answer := callAs(t, s, "other", "otherkey", "GET", "/1/reenrich/"+first.ID, ""); code != http.StatusNotFound {
		t.Errorf("another app's is answered with %d %s", code, answer)
	}
	if code, answer := callAs(t, s, "demo", "otherkey", "POST", "/1/reenrich", ""); code != http.StatusUnauthorized {
		t.Errorf("another app's key is answered with %d %s", code, answer)
	}
	code, answer = call(t, s, "POST", "/1/reenrich/"+first.ID+"/cancel", "")
	if r := decodeReenriched(t, code, answer); r.State != "cancelled" {
		t.Errorf("cancelled: %s", answer)
	}
	for path, want := range map[string]int{"/1/reenrich/" + first.ID + "/cancel": 409, "/1/reenrich/reenrich-x/cancel": 404} {
		if code, answer := call(t, s, "POST", path, ""); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, answer, want)
		}
	}
	code, answer = call(t, s, "POST", "/1/reenrich", "")
	second := decodeReenriched(t, code, answer)
	var list struct{ Reenrichments []reenriched }
	getJSON(t, s, "/1/reenrich", &list)
	if l := list.Reenrichments; len(l) != 2 || l[0].ID != second.ID || l[1].ID != first.ID || l[0].DryRun {
		t.Errorf("listed %+v, want %s and then %s", l, second.ID, first.ID)
	}
}

// A damaged row is skipped and reported. The others are resolved.
func TestDamagedRowsAreReported(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	ok(t, s, "/1/strategies/personalization", lateStrategy)
	ok(t, s, "/1/events", `{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","objectIDs":["1"]}]}`)
	idle(t, s)
	app, err := s.Backends.Config.App(t.Context(), "demo")
	must.Succeed(t, err)
	at := s.Backends.Now().Add(-time.Hour).UnixMilli()
	var damaged []store.LogEvent
	for i, original := range []string{`{`, `{"receivedAt":1,"index":"i","unknownObjects":1,"event":{"eventType":"seen"}}`, `{"unknownObjects":1}`} {
		damaged = append(damaged, store.LogEvent{User: "u", Time: at, ID: fmt.Sprint("id", i), Type: "view", Name: "Seen", Original: []byte(original)})
	}
	must.Succeed(t, s.Backends.Store.Events.Log("demo", app.Log).Append(t.Context(), damaged))
	save(t, s, "i", object("i", "1"))
	r := reenrichAll(t, s, "")
	wantReenriched(t, r, 4, 1, 0)
	if r.Faulty != 3 || len(r.Faults) != 3 || !strings.HasPrefix(r.Faults[0], "demo,u,") || !strings.Contains(r.Faults[0], ",id0: read the original") {
		t.Errorf("got %+v, want three faults with their keys", r)
	}
	if code, answer := call(t, s, "GET", "/1/profiles/u", ""); code != http.StatusOK || !strings.Contains(answer, `"value":"ci1"`) {
		t.Errorf("%d %s, want the object's color", code, answer)
	}
}
