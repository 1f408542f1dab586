package profiles_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// history is an app with the events of some users, and its strategies by version.
type history struct {
	*stack.Stack
	http.Handler
	events     map[string][]affinity.Event
	strategies []strategy.Strategy
}

const heldDays = 90

// startHistory imports events of the last hundred days. The log of ann is folded, bob is
// deleted, cleo opts out of views, and all events of dan are in the log alone.
func startHistory(t *testing.T, rnd *rand.Rand) *history {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: functiontest.App, Key: "all"}},
		ConfigTTL: time.Millisecond, RetentionDays: heldDays})
	must.Succeed(t, err)
	must.CloseAtEnd(t, s)
	h := &history{Stack: s, Handler: profiles.New(s.Backends.ForProfiles()), events: map[string][]affinity.Event{}}
	for i := range 3 {
		of := strategy.Strategy{
			EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: i + 1}, {EventName: "Bought", EventType: event.Conversion, Score: 7}},
			FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 10 - i}},
			HalfLives:     []strategy.HalfLife{strategy.Days(10 + 30*i), strategy.Days(5)}[:min(i, 2)],
		}
		functiontest.SetStrategy(t, s, of)
		h.strategies = append(h.strategies, of)
	}
	for _, user := range []string{"ann", "bob", "cleo", "dan"} {
		h.importEvents(t, rnd, user, 100*24*time.Hour)
	}
	b := s.Backends.ForProfiles()
	app, err := b.Config.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	_, err = b.Profiles.Fold(t.Context(), app, "ann")
	must.Succeed(t, err)
	functiontest.Do(t, h, "all", "DELETE", "/1/profiles/bob", "")
	functiontest.Do(t, h, "all", "PUT", "/1/optouts/cleo", `{"eventTypes":["view"]}`)
	h.events["bob"], h.events["cleo"] = nil, nil
	return h
}

// importEvents imports events of a user.
func (h *history) importEvents(t *testing.T, rnd *rand.Rand, user string, last time.Duration) {
	var lines strings.Builder
	now := h.Backends.Now()
	for range 40 {
		e := affinity.Event{Time: now.Add(-rand.N(last)).UnixMilli(), Type: event.View, Name: "Seen",
			Counts: []affinity.Count{{Facet: "color", Value: fmt.Sprint("c", rnd.IntN(5)), N: 1}}}
		if rnd.IntN(3) == 0 {
			e.Type, e.Name = event.Conversion, "Bought"
		}
		fmt.Fprintf(&lines, `{"eventType":%q,"eventName":%q,"index":"i","userToken":%q,"timestamp":%d,"filters":["color:%s"]}`+"\n",
			e.Type, e.Name, user, e.Time, e.Counts[0].Value)
		h.events[user] = append(h.events[user], e)
	}
	functiontest.Do(t, imports.New(h.Backends.ForImports()), "all", "POST", "/1/events/import", lines.String())
}

// A profile as of an instant is the reference's of the events up to it that the retention holds,
// under each version of the strategy.
func TestProfileAsOfAnInstant(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	h := startHistory(t, rnd)
	known := 0
	for range 150 {
		user := []string{"ann", "bob", "cleo", "dan"}[rnd.IntN(4)]
		now := h.Backends.Now()
		at := now.Add(-rand.N(heldDays*24*time.Hour - time.Minute)).UnixMilli()
		if of := h.events[user]; len(of) > 0 && rnd.IntN(2) == 0 { // at an event, or a millisecond beside it
			if e := of[rnd.IntN(len(of))].Time + int64(rnd.IntN(3)-1); now.Sub(time.UnixMilli(e)) < heldDays*24*time.Hour-time.Minute {
				at = e
			}
		}
		version := rnd.IntN(len(h.strategies)) + 1
		text := fmt.Sprint(at)
		if rnd.IntN(2) == 0 {
			text = event.FormatTime(at)
		}
		known += h.checkInstant(t, user, at, version, fmt.Sprintf("/1/profiles/%s?at=%s&strategyVersion=%d", user, text, version))
	}
	if known < 30 {
		t.Errorf("%d profiles were known: the test shows too little", known)
	}
}

// checkInstant checks the answer to a request, and returns how many profiles it has.
func (h *history) checkInstant(t *testing.T, user string, at int64, version int, path string) int {
	t.Helper()
	status, answer := functiontest.Call(h, "all", "GET", path, "")
	if status == http.StatusNotFound {
		if slices.ContainsFunc(h.events[user], func(e affinity.Event) bool {
			return e.Time <= at && e.Time > h.Backends.Now().Add(-heldDays*24*time.Hour).UnixMilli()
		}) || !strings.Contains(answer, "has no event up to") {
			t.Errorf("%s: %s", path, answer)
		}
		return 0
	}
	got := functiontest.Answer[api.Profile](t, h, "all", "GET", path, "")
	var held []affinity.Event
	for _, e := range h.events[user] {
		if e.Time >= got.HeldFrom.UnixMilli() {
			held = append(held, e)
		}
	}
	want := affinity.Reference(held, h.strategies[version-1], affinity.Window{Now: at})
	if got.AsOf.UnixMilli() != at || got.LastEventAt.UnixMilli() != want.LastEventAt || got.StrategyVersion != int64(version) ||
		got.Source != api.SourceComputed || got.Total != want.Total || len(got.Affinities) != len(want.Affinities) {
		t.Fatalf("%s: %+v\nwant %+v", path, got, want)
	}
	if age := h.Backends.Now().Sub(got.HeldFrom.Time) - heldDays*24*time.Hour; age < -time.Second || age > 5*time.Minute {
		t.Errorf("%s: events are held from %v on", path, got.HeldFrom)
	}
	for i, a := range want.Affinities {
		if b := got.Affinities[i]; math.Abs(a.Scores[0]-b.Score) > 1e-9*a.Scores[0] || a.Value != b.Value && i > 0 && a.Scores[0] < want.Affinities[i-1].Scores[0]*(1-1e-9) {
			t.Fatalf("%s: %+v, want %+v", path, b, a)
		}
	}
	return 1
}

// The profile as of the time of an earlier answer is that answer.
func TestProfileAsOfAnEarlierAnswer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 3))
	h := startHistory(t, rnd)
	read := func(path string) api.Profile { return functiontest.Answer[api.Profile](t, h, "all", "GET", path, "") }
	before := read("/1/profiles/ann?segments=true")
	for h.Backends.Now().UnixMilli() <= before.AsOf.UnixMilli() {
		time.Sleep(time.Millisecond)
	}
	h.importEvents(t, rnd, "ann", time.Nanosecond)
	after := read(fmt.Sprintf("/1/profiles/ann?segments=true&at=%d", before.AsOf.UnixMilli()))
	if !slices.EqualFunc(before.Affinities, after.Affinities, func(a, b api.Affinity) bool {
		return a.Value == b.Value && math.Abs(a.Score-b.Score) < 1e-9*a.Score
	}) || before.LastEventAt != after.LastEventAt || before.AsOf != after.AsOf || after.Segments == nil {
		t.Errorf("%+v\nbefore: %+v", after, before)
	}
}

func TestInstantsThatAreRefused(t *testing.T) {
	h := startHistory(t, rand.New(rand.NewPCG(4, 5)))
	now := h.Backends.Now()
	ask := func(path string, status int, want string) functiontest.Request {
		return functiontest.Ask("all", "GET", path, "", status, want)
	}
	today := event.FormatTime(now.Add(-time.Hour).UnixMilli())
	functiontest.Check(t, h,
		ask("/1/profiles/dan?at=yesterday", 422, `at must be a time such as 2026-11-21T10:00:00Z, or milliseconds since 1970, got \"yesterday\"`),
		ask("/1/profiles/dan?at=", 422, "at must be a time"),
		ask("/1/profiles/dan?at="+event.FormatTime(now.Add(time.Hour).UnixMilli()), 422, "at must not be in the future: the engine's clock says "),
		ask("/1/profiles/dan?at=9999-12-31", 422, "at must not be in the future"),
		ask("/1/profiles/dan?at="+event.FormatTime(now.AddDate(0, 0, -heldDays-1).UnixMilli()), 422, "older events have left the app's retention of 90 days"),
		ask("/1/profiles/dan?at=1066-10-14", 422, "at must not be before "),
		ask("/1/profiles/dan?strategyVersion=1", 422, "strategyVersion needs at"),
		ask("/1/profiles/dan?strategyVersion=0&at="+today, 422, "strategyVersion must be a positive integer"),
		ask("/1/profiles/dan?strategyVersion=x&at="+today, 422, "strategyVersion must be a positive integer"),
		ask("/1/profiles/dan?strategyVersion=99&at="+today, 422, "strategy 99 does not exist or is no longer kept"),
		ask("/1/profiles/dan?halfLife=3&at="+today, 422, "halfLife must be one of the strategy's halfLives"),
		ask("/1/profiles/dan?consistency=x&at="+today, 422, "consistency must be"),
		ask("/1/profiles/dan?consistency=strong&at="+today, 200, `"source":"computed"`),
		ask("/1/profiles/dan?halfLife=40&strategyVersion=2&at="+today, 200, `"scores":{"40":`),
		ask("/1/profiles/bob?at="+today, 404, `user token \"bob\" has no event up to`),
		ask("/1/profiles/nobody?at="+today, 404, "has no event up to"),
		ask("/1/profiles/personalization/dan?at="+today, 422, "GET /1/profiles/{userToken} takes at"),
		functiontest.Ask("all", "POST", "/1/profiles/batch?at="+today, `{"userTokens":["dan"]}`, 422, `Unknown query option \"at\"`),
		functiontest.Ask("all", "POST", "/1/profiles/batch", `{"userTokens":["dan"],"at":"`+today+`"}`, 422, "Unknown key"),
	)
	for range limit.AtOnce(limit.Explain) {
		leave, err := h.Backends.ForProfiles().Limits.Enter(functiontest.App, limit.Explain)
		must.Succeed(t, err)
		defer leave()
	}
	functiontest.Check(t, h, ask("/1/profiles/dan?at="+today, 429, "explanations and profiles as of an instant under way"),
		ask("/1/profiles/dan", 200, `"source":"`))
}
