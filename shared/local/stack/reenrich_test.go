package stack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
)

const lateStrategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3},{"eventName":"Opened","eventType":"click","score":7}],
	"facetsScoring":[{"facetName":"color","score":10},{"facetName":"brand","score":4}],"personalizationImpact":50}`

// reenriched is the answer that describes a re-enrichment.
type reenriched struct {
	ID, State                                                         string
	DryRun                                                            bool
	Events, WithUnknownObjects, Resolved, StillUnknown, Faulty, Users int
	PlannedUsers, VisitedUsers                                        int
	Faults                                                            []string
	Error                                                             string
}

func decodeReenriched(t *testing.T, code int, answer string) reenriched {
	t.Helper()
	var r reenriched
	if err := json.Unmarshal([]byte(answer), &r); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s", code, answer)
	}
	return r
}

// reenrichAll runs a re-enrichment to its end, and waits until its messages are
// applied.
func reenrichAll(t *testing.T, s *stack.Stack, body string) reenriched {
	t.Helper()
	code, answer := call(t, s, "POST", "/1/reenrich", body)
	id := decodeReenriched(t, code, answer).ID
	var r reenriched
	poll(t, time.Minute, func() (string, bool) {
		code, answer := call(t, s, "GET", "/1/reenrich/"+id, "")
		r = decodeReenriched(t, code, answer)
		return answer, job.State(r.State).Ended()
	})
	idle(t, s)
	return r
}

// wantReenriched checks the counts of a re-enrichment that is done.
func wantReenriched(t *testing.T, r reenriched, events, resolved, still int) {
	t.Helper()
	if r.State != "done" || r.Events != events || r.Resolved != resolved || r.StillUnknown != still || r.WithUnknownObjects != resolved+still {
		t.Errorf("got %+v, want it done with %d events, %d resolved, %d still unknown", r, events, resolved, still)
	}
}

// recorder keeps the messages of re-enrichments, and publishes them if it has a bus.
type recorder struct {
	bus  *pubsub.Bus
	mu   sync.Mutex
	sent []bus.Message
}

func (r *recorder) Publish(ctx context.Context, m bus.Message) error {
	r.mu.Lock()
	r.sent = append(r.sent, m)
	r.mu.Unlock()
	if r.bus == nil {
		return nil
	}
	return r.bus.Publish(ctx, m)
}

// take returns the messages since the last call.
func (r *recorder) take() []bus.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

// record makes an engine's re-enrichments publish through a recorder.
func record(s *stack.Stack, through *pubsub.Bus) *recorder {
	r := &recorder{bus: through}
	w := s.Backends.Reenrich.Work.(reenrich.Work)
	w.Bus = r
	s.Backends.Reenrich.Work = w
	return r
}

// save stores objects of an index: attributes by id.
func save(t *testing.T, s *stack.Stack, index string, objects ...string) {
	t.Helper()
	var requests []string
	for _, o := range objects {
		requests = append(requests, `{"action":"addObject","body":`+o+`}`)
	}
	wantStatus(t, s, http.StatusOK, "POST", "/1/indexes/"+index+"/batch", `{"requests":[`+strings.Join(requests, ",")+`]}`)
}

func ok(t *testing.T, s *stack.Stack, path, body string) {
	t.Helper()
	wantStatus(t, s, http.StatusOK, "POST", path, body)
}

// shopper sends events of some users and remembers them.
type shopper struct {
	t      *testing.T
	s      *stack.Stack
	events map[string][]lateEvent
}

type lateEvent struct {
	typ, name, index string
	objects          []string
	filters          []string
	time             int64 // 0: when it is received
}

func (e lateEvent) json(user string) string {
	m := map[string]any{"eventType": e.typ, "eventName": e.name, "index": e.index, "userToken": user}
	if e.time != 0 {
		m["timestamp"] = e.time
	}
	if len(e.objects) > 0 {
		m["objectIDs"] = e.objects
	} else {
		m["filters"] = e.filters
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// The colors and brands of an object come from its index and its id.
func filtersOf(index, id string) [2]string {
	return [2]string{"c" + index + id[len(id)-1:], "b" + id[len(id)-1:]}
}

func object(index, id string) string {
	f := filtersOf(index, id)
	return fmt.Sprintf(`{"objectID":%q,"color":%q,"brand":%q}`, id, f[0], f[1])
}

// reference is a user's profile by the formula when only some objects are known.
func (sh *shopper) reference(user string, known func(id string) bool) map[string]float64 {
	app, err := sh.s.Backends.Config.App(sh.t.Context(), "demo")
	must.Succeed(sh.t, err)
	var events []affinity.Event
	for _, e := range sh.events[user] {
		a := affinity.Event{Time: max(1, e.time), Type: event.Type(e.typ), Name: e.name}
		for _, f := range e.filters {
			facet, value, _ := strings.Cut(f, ":")
			a.Counts = append(a.Counts, affinity.Count{Facet: facet, Value: value, N: 1})
		}
		for _, id := range e.objects {
			if f := filtersOf(e.index, id); known(id) {
				a.Counts = append(a.Counts, affinity.Count{Facet: "color", Value: f[0], N: 1}, affinity.Count{Facet: "brand", Value: f[1], N: 1})
			}
		}
		events = append(events, a)
	}
	want := map[string]float64{}
	for _, a := range affinity.Reference(events, app.Strategy, affinity.Window{Now: sh.s.Backends.Now().UnixMilli()}).Affinities {
		want[a.Facet+":"+a.Value] = a.Scores[0]
	}
	return want
}

// wantProfiles compares every profile exactly with its reference, and runs an audit.
func (sh *shopper) wantProfiles(when string, known func(id string) bool) {
	sh.t.Helper()
	for user := range sh.events {
		var p struct {
			Affinities []struct {
				Facet, Value string
				Score        float64
			}
		}
		getJSON(sh.t, sh.s, "/1/profiles/"+user+"?limit=1000", &p)
		got := map[string]float64{}
		for _, a := range p.Affinities {
			got[a.Facet+":"+a.Value] = a.Score
		}
		if diff := cmp.Diff(sh.reference(user, known), got); diff != "" {
			sh.t.Errorf("%s, profile of %s (-reference +served):\n%s", when, user, diff)
		}
	}
	code, answer := call(sh.t, sh.s, "POST", "/1/audits", `{"sample":100}`)
	var report struct{ Compared, Stored, Differing int }
	if err := json.Unmarshal([]byte(answer), &report); err != nil || code != http.StatusOK || report.Compared != len(sh.events) || report.Differing != 0 {
		sh.t.Errorf("%s, the audit answers %d %s", when, code, answer)
	}
}

// fold folds every user's log, and checks that each user has blocks.
func (sh *shopper) fold() {
	sh.t.Helper()
	b := sh.s.Backends
	app, err := b.Config.App(sh.t.Context(), "demo")
	must.Succeed(sh.t, err)
	for user := range sh.events {
		if _, err := b.Profiles.Fold(sh.t.Context(), app, user); err != nil {
			sh.t.Fatal(err)
		}
		row, err := b.Store.Users.ReadUser(sh.t.Context(), "demo", user)
		must.Succeed(sh.t, err)
		if m, err := history.ParseManifest(row.Manifest); err != nil || len(m.Blocks) == 0 {
			sh.t.Errorf("%s has the manifest %+v, error %v; want blocks", user, m, err)
		}
	}
}

// Objects arrive in two waves, and a third never does. Between the waves events are
// sent, imported and folded. After each re-enrichment every profile is as if the
// objects had been known all along.
func TestLateCatalog(t *testing.T) {
	t.Parallel()
	for _, layout := range []schema.Name{schema.Wide, schema.Narrow} {
		t.Run(string(layout), func(t *testing.T) { catalogThatComesLate(t, layout) })
	}
}

func catalogThatComesLate(t *testing.T, layout schema.Name) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond, Layout: schema.Of(layout), Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3}})
	sent := record(s, s.Backends.Bus)
	ok(t, s, "/1/strategies/personalization", lateStrategy)
	wave := func(n int) {
		for _, index := range []string{"i", "j"} {
			save(t, s, index, object(index, fmt.Sprint("wave", n, "-1")), object(index, fmt.Sprint("wave", n, "-2")))
		}
	}
	until := func(n int) func(string) bool {
		return func(id string) bool { return int(id[4]-'0') <= n }
	}
	wave(0)
	sh := &shopper{t: t, s: s, events: map[string][]lateEvent{}}
	all, unknown := sh.shop(rand.New(rand.NewPCG(1, uint64(len(layout)))))
	idle(t, s)
	sh.fold()
	sh.wantProfiles("before any re-enrichment", until(0))

	if r := reenrichAll(t, s, ""); len(sent.take()) != 0 {
		t.Errorf("published although no event was resolved: %+v", r)
	} else {
		wantReenriched(t, r, all, 0, unknown[0])
	}
	wave(1)
	first := unknown[0] - unknown[1]
	r := reenrichAll(t, s, `{"dryRun":true}`)
	wantReenriched(t, r, all, first, unknown[1])
	if !r.DryRun || len(sent.take()) != 0 {
		t.Errorf("a dry run published: %+v", r)
	}
	sh.wantProfiles("after a dry run", until(0))
	wantReenriched(t, reenrichAll(t, s, ""), all, first, unknown[1])
	if len(sent.take()) == 0 {
		t.Error("nothing was published")
	}
	sh.wantProfiles("after the second wave", until(1))

	sh.fold()
	// Events of the second wave's objects alone are resolved. Others still wait.
	wantReenriched(t, reenrichAll(t, s, "{}"), all, 0, unknown[2])
	if again := sent.take(); len(again) != 0 {
		t.Errorf("published again: %+v", again)
	}
	sh.wantProfiles("after it was repeated", until(1))
	wave(2)
	wantReenriched(t, reenrichAll(t, s, ""), all, unknown[2], 0)
	sh.wantProfiles("after the third wave", until(2))
	sent.take()
	wantReenriched(t, reenrichAll(t, s, ""), all, 0, 0)
	if again := sent.take(); len(again) != 0 {
		t.Errorf("published again: %+v", again)
	}
}

// shop sends events of every kind. It returns their number, the numbers of those
// that the first and the second wave leave without a newly known object, and the
// number of those with objects of the third wave.
func (sh *shopper) shop(rnd *rand.Rand) (all int, unknown [3]int) {
	sh.t.Helper()
	now := sh.s.Backends.Now().UnixMilli()
	var live, imported []string
	for n := range 300 {
		user := fmt.Sprint("u", rnd.IntN(5))
		e := lateEvent{typ: "view", name: "Seen", index: string("ij"[rnd.IntN(2)])}
		if rnd.IntN(3) == 0 {
			e.typ, e.name = "click", "Opened"
		}
		waves := [3]bool{}
		for range rnd.IntN(4) {
			w := rnd.IntN(3)
			if id := fmt.Sprintf("wave%d-%d", w, 1+rnd.IntN(2)); !slices.Contains(e.objects, id) {
				e.objects = append(e.objects, id)
				waves[w] = true
			}
		}
		if len(e.objects) == 0 {
			e.filters = []string{"color:ci1", "brand:own"}
		}
		if waves[1] || waves[2] {
			unknown[0]++
		}
		if waves[2] {
			unknown[2]++
			if !waves[1] {
				unknown[1]++
			}
		}
		// Days ago and a millisecond apart, so that no two events are equal.
		e.time = now - int64(1+rnd.IntN(20))*day.Milliseconds() - int64(n)
		switch rnd.IntN(3) {
		case 0:
			e.time -= 40 * day.Milliseconds()
			imported = append(imported, e.json(user))
		case 1:
			if rnd.IntN(4) == 0 {
				e.time = 0
			}
			fallthrough
		default:
			live = append(live, e.json(user))
		}
		sh.events[user] = append(sh.events[user], e)
		all++
	}
	for some := range slices.Chunk(live, 70) {
		ok(sh.t, sh.s, "/1/events", `{"events":[`+strings.Join(some, ",")+`]}`)
	}
	ok(sh.t, sh.s, "/1/events/import", strings.Join(imported, "\n"))
	return all, unknown
}
