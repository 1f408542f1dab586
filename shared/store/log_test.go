package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const app = "shop"

var clicks = strategy.Strategy{
	EventsScoring: []strategy.EventScore{{EventName: `Clicked, "again"`, EventType: event.Click, Score: 10}},
	FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 100}, {FacetName: "a,b", Score: 1}},
}

func click(user string, ms int64, counts ...affinity.Count) store.LogEvent {
	return store.LogEvent{User: user, Time: ms, ID: fmt.Sprintf("id%09d", ms), Type: event.Click, Name: `Clicked, "again"`,
		Counts: counts, Original: []byte(`{"event":{}}`)}
}

// score reads the log of one user as of a time.
func score(t *testing.T, s fixture, st strategy.Strategy, user string, now int64) affinity.Profile {
	t.Helper()
	c, w := affinity.Compile(st), affinity.Window{Now: now}
	sc := affinity.NewScorer(c, w)
	_, err := s.log().Score(context.Background(), []store.UserRange{{User: user, From: history.Pos{Time: w.From()}, To: history.End}}, c,
		func(string) *affinity.Scorer { return sc })
	must.Succeed(t, err)
	return sc.Profile()
}

func testLogScoresAppendedEvents(t *testing.T, s fixture) {
	events := []store.LogEvent{
		click("u", 0, affinity.Count{Facet: "color", Value: "Red", N: 2}, affinity.Count{Facet: "size", Value: "L", N: 1}),
		click("u", 5000, affinity.Count{Facet: "a,b", Value: "x", N: 1}, affinity.Count{Facet: "color", Value: "Red", N: 1}),
		click("u", 6000), // an object the catalog does not know
		click("u+", 1000, affinity.Count{Facet: "color", Value: "Blue", N: 1}),
		click("u0", 1000, affinity.Count{Facet: "color", Value: "Blue", N: 1}),
	}
	must.Succeed(t, s.log().Append(context.Background(), events))
	for _, test := range []struct {
		name string
		st   strategy.Strategy
		want []affinity.Affinity
	}{
		{"selected facets", clicks, []affinity.Affinity{
			{Facet: "color", Value: "Red", Scores: []float64{3000}}, {Facet: "a,b", Value: "x", Scores: []float64{10}}}},
		{"no strategy", strategy.Strategy{}, nil},
		{"more columns than a filter holds", manyFacets(), []affinity.Affinity{{Facet: "color", Value: "Red", Scores: []float64{30}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := score(t, s, test.st, "u", 10_000)
			if diff := cmp.Diff(test.want, p.Affinities, cmp.Transformer("empty", func(a []affinity.Affinity) []affinity.Affinity {
				return append([]affinity.Affinity{}, a...)
			})); diff != "" {
				t.Errorf("affinities (-want +got):\n%s", diff)
			}
			if !p.Known || p.LastEventAt != 6000 {
				t.Errorf("known %v, last event at %d, want 6000: scored or not, an event counts as seen", p.Known, p.LastEventAt)
			}
		})
	}
}

func manyFacets() strategy.Strategy {
	st := strategy.Strategy{EventsScoring: clicks.EventsScoring}
	for i := range 99 {
		st.FacetsScoring = append(st.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint("facet", i), Score: 1})
		st.EventsScoring = append(st.EventsScoring, strategy.EventScore{EventName: fmt.Sprint("event", i), EventType: event.View, Score: 1})
	}
	st.FacetsScoring = append(st.FacetsScoring, strategy.FacetScore{FacetName: "color", Score: 1})
	return st
}

func testAppendReplacesTheRow(t *testing.T, s fixture) {
	ctx := context.Background()
	first := click("u", 1000, affinity.Count{Facet: "color", Value: "Red", N: 1}, affinity.Count{Facet: "a,b", Value: "x", N: 1})
	second := click("u", 1000, affinity.Count{Facet: "color", Value: "Blue", N: 1})
	for _, e := range []store.LogEvent{first, second, second} {
		must.Succeed(t, s.log().Append(ctx, []store.LogEvent{e}))
	}
	p := score(t, s, clicks, "u", 2000)
	want := []affinity.Affinity{{Facet: "color", Value: "Blue", Scores: []float64{1000}}}
	if diff := cmp.Diff(want, p.Affinities); diff != "" {
		t.Errorf("a second resolution must replace the first (-want +got):\n%s", diff)
	}
}

func testFutureEventsDoNotCount(t *testing.T, s fixture) {
	red := affinity.Count{Facet: "color", Value: "Red", N: 1}
	must.Succeed(t, s.log().Append(context.Background(), []store.LogEvent{click("u", 1000, red), click("u", 9000, red), click("u", 8000, red)}))
	p := score(t, s, clicks, "u", 5000)
	if len(p.Affinities) != 1 || p.Affinities[0].Scores[0] != 1000 {
		t.Errorf("affinities %v, want only the event of the past", p.Affinities)
	}
	if p.Until != 8000 {
		t.Errorf("valid until %d, want until the first of them, 8000", p.Until)
	}
}

func testPurgeLogRemovesUpToATime(t *testing.T, s fixture) {
	ctx := context.Background()
	red := affinity.Count{Facet: "color", Value: "Red", N: 1}
	var events []store.LogEvent
	for ms := int64(1); ms <= 1200; ms++ { // more than one request of deletions
		events = append(events, click("u", ms, red))
	}
	events = append(events, click("v", 1, red))
	must.Succeed(t, s.log().Append(ctx, events))
	n, err := s.Events.PurgeLog(ctx, app, "u", affinity.Tombstone{DeletedUntil: 1100, ReceivedUntil: 1100})
	if err != nil || n != 1100 {
		t.Fatalf("purged %d, %v; want 1100", n, err)
	}
	if p := score(t, s, clicks, "u", 5000); p.Affinities[0].Scores[0] != 100*1000 {
		t.Errorf("score %v, want that of the 100 events left", p.Affinities)
	}
	if p := score(t, s, clicks, "v", 5000); !p.Known {
		t.Error("another user's event is gone")
	}
}

func testLimitsOfTime(t *testing.T, s fixture) {
	red := affinity.Count{Facet: "color", Value: "Red", N: 1}
	last := int64(253402300799999) // the end of the year 9999
	must.Succeed(t, s.log().Append(context.Background(), []store.LogEvent{click("u", 0, red), click("u", last, red)}))
	if p := score(t, s, clicks, "u", last); p.Affinities[0].Scores[0] != 2000 || p.LastEventAt != last {
		t.Errorf("profile %+v, want both ends of time counted", p)
	}
}
