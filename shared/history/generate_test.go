package history_test

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/strategy"
)

// A small world, so that random events and strategies meet: event names a and b
// score at times, c never does; facets f0 to f2 at times, f3 never; values v0
// to v2 may be aliases of v3 and of "merged", which no event carries.
var (
	types      = []event.Type{event.View, event.Click, event.Conversion}
	eventNames = []string{"a", "b", "c"}
	facets     = []string{"f0", "f1", "f2", "f3"}
	values     = []string{"v0", "v1", "v2", "v3", "v4"}
)

func drawStrategy(t *rapid.T) strategy.Strategy {
	score := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, strategy.MaxScore))
	var s strategy.Strategy
	for _, typ := range types {
		for _, name := range eventNames[:2] {
			if rapid.Bool().Draw(t, "named event") {
				s.EventsScoring = append(s.EventsScoring, strategy.EventScore{EventName: name, EventType: typ, Score: score.Draw(t, "points")})
			}
		}
	}
	for _, facet := range facets[:3] {
		if rapid.Bool().Draw(t, "named facet") {
			s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: score.Draw(t, "weight")})
		}
	}
	s.HalfLives = rapid.SliceOfNDistinct(rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, strategy.MaxHalfLifeDays)), 0, 3, rapid.ID).Draw(t, "half-lives")
	s.Aliases = map[string]map[string]string{}
	for _, facet := range facets {
		to := rapid.SampledFrom([]string{"v3", "merged"})
		s.Aliases[facet] = rapid.MapOfN(rapid.SampledFrom(values[:3]), to, 0, 3).Draw(t, "aliases")
	}
	if err := s.Validate(); err != nil {
		t.Fatalf("the generator makes strategies that are not valid: %v", err)
	}
	return s
}

func drawWindow(t *rapid.T) affinity.Window {
	w := affinity.Window{
		Now:           now + rapid.Int64Range(-dayMS, dayMS).Draw(t, "now"),
		RetentionDays: rapid.SampledFrom([]int{0, 1, 30, 90, 4_000}).Draw(t, "retention"),
	}
	if rapid.Bool().Draw(t, "deleted") {
		w.DeletedUntil = drawTime(t, w)
	}
	return w
}

// drawTime draws times all over, and often those next to which the window
// begins or ends.
func drawTime(t *rapid.T, w affinity.Window) int64 {
	edges := []int64{w.Now, max(w.From(), 0)}
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom(edges).Draw(t, "edge") + rapid.Int64Range(-2, 2).Draw(t, "off by")
		}),
		rapid.Int64Range(w.Now-100*dayMS, w.Now+dayMS),
		rapid.Int64Range(w.Now-5_000*dayMS, w.Now+dayMS),
	).Draw(t, "time")
}

// drawLog draws a user's events, in order.
func drawLog(t *rapid.T, w affinity.Window) []affinity.Event {
	one := rapid.Custom(func(t *rapid.T) affinity.Event {
		e := affinity.Event{Time: drawTime(t, w)}
		if rapid.IntRange(0, 9).Draw(t, "without counts") == 0 {
			return e
		}
		e.Type, e.Name = rapid.SampledFrom(types).Draw(t, "type"), rapid.SampledFrom(eventNames).Draw(t, "name")
		for range rapid.IntRange(0, 5).Draw(t, "counts") {
			e.Counts = append(e.Counts, affinity.Count{
				Facet: rapid.SampledFrom(facets).Draw(t, "facet"),
				Value: rapid.SampledFrom(values).Draw(t, "value"),
				N:     rapid.OneOf(rapid.Just(1), rapid.IntRange(-1, 200), rapid.IntRange(1<<40, math.MaxInt)).Draw(t, "n"),
			})
		}
		return e
	})
	events := rapid.SliceOfN(one, 0, 40).Draw(t, "events")
	slices.SortStableFunc(events, byTime)
	return events
}

func byTime(a, b affinity.Event) int {
	return history.Pos{Time: a.Time}.Compare(history.Pos{Time: b.Time})
}

// drawWide draws events with more kinds, facets, values and texts than a byte
// can count, but no more than n each.
func drawWide(t *rapid.T, n int) []affinity.Event {
	text := func(kind string, n int) string {
		return fmt.Sprintf("%s%0*d", kind, rapid.SampledFrom([]int{1, 1, 1, 150}).Draw(t, "width"), rapid.IntRange(0, n).Draw(t, kind))
	}
	events := make([]affinity.Event, rapid.IntRange(0, n).Draw(t, "events"))
	at := now
	for i := range events {
		at += rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, dayMS)).Draw(t, "since")
		events[i] = affinity.Event{Time: at, Type: event.View, Name: text("name", n)}
		for range rapid.IntRange(0, 4).Draw(t, "counts") {
			c := affinity.Count{Facet: text("facet", 3), Value: text("value", n), N: rapid.SampledFrom([]int{1, 1, 1, 2, 200}).Draw(t, "n")}
			events[i].Counts = append(events[i].Counts, c)
		}
	}
	return events
}

// drawPos draws a place among few, so that places meet.
func drawPos(t *rapid.T, label string) history.Pos {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) history.Pos {
			p := history.Pos{Time: rapid.Int64Range(0, 8).Draw(t, "ms"), ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id")}
			if rapid.Bool().Draw(t, "next") {
				p = p.Next()
			}
			return p
		}),
		rapid.Just(history.End),
	).Draw(t, label)
}

func drawRange(t *rapid.T) history.Range {
	r := history.Range{From: drawPos(t, "from"), To: drawPos(t, "to")}
	switch c := r.From.Compare(r.To); {
	case c > 0:
		r.From, r.To = r.To, r.From
	case c == 0 && r.To == history.End:
		r.From = history.Pos{}
	case c == 0:
		r.To = r.To.Next()
	}
	return r
}

func drawBlock(t *rapid.T) history.Block {
	return history.Block{
		Range:  drawRange(t),
		ID:     history.BlockID{Ticket: rapid.Int64().Draw(t, "ticket"), N: rapid.IntRange(0, math.MaxInt).Draw(t, "n")},
		Newest: rapid.Int64().Draw(t, "newest"),
		Events: rapid.IntRange(0, math.MaxInt).Draw(t, "events"),
		Bytes:  rapid.IntRange(0, math.MaxInt).Draw(t, "bytes"),
	}
}

func drawManifest(t *rapid.T) history.Manifest {
	m := history.Manifest{Version: rapid.Int64().Draw(t, "version"), Complete: rapid.Int64().Draw(t, "complete")}
	if rapid.Bool().Draw(t, "announced") {
		m.Announced = &history.Announcement{Range: drawRange(t), Ticket: rapid.Int64().Draw(t, "ticket")}
	}
	for range rapid.IntRange(0, 6).Draw(t, "blocks") {
		m = m.With(drawBlock(t))
	}
	return m
}
