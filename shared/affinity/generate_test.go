package affinity_test

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/strategy"
)

// A small world, so that random events and strategies meet: event names a and b
// score at times, c never does; facets f0 to f3 at times, f4 never; values v0
// to v2 may be aliases of v3 and of "merged", which no event carries.
var (
	types      = []event.Type{event.View, event.Click, event.Conversion}
	eventNames = []string{"a", "b", "c"}
	facets     = []string{"f0", "f1", "f2", "f3", "f4"}
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
	for _, facet := range facets[:4] {
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
		t.Fatalf("the generator made an invalid strategy: %v", err)
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
	edges := []int64{w.Now, w.From()}
	if w.RetentionDays == 0 && w.DeletedUntil == 0 {
		edges[1] = 0
	}
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom(edges).Draw(t, "edge") + rapid.Int64Range(-2, 2).Draw(t, "off by")
		}),
		rapid.Int64Range(w.Now-100*dayMS, w.Now+dayMS),
		rapid.Int64Range(w.Now-5_000*dayMS, w.Now+dayMS),
	).Draw(t, "time")
}

func drawEvents(t *rapid.T, w affinity.Window) []affinity.Event {
	one := rapid.Custom(func(t *rapid.T) affinity.Event {
		e := affinity.Event{
			Time: drawTime(t, w),
			Type: rapid.SampledFrom(types).Draw(t, "type"),
			Name: rapid.SampledFrom(eventNames).Draw(t, "name"),
		}
		for range rapid.IntRange(0, 5).Draw(t, "counts") {
			e.Counts = append(e.Counts, affinity.Count{
				Facet: rapid.SampledFrom(facets).Draw(t, "facet"),
				Value: rapid.SampledFrom(values).Draw(t, "value"),
				N:     rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(-1, 0)).Draw(t, "n"),
			})
		}
		return e
	})
	return rapid.SliceOfN(one, 0, 20).Draw(t, "events")
}

// drawProfile draws what a profile may be, computed or not.
func drawProfile(t *rapid.T) affinity.Profile {
	p := affinity.Profile{
		StrategyVersion: rapid.Int64().Draw(t, "version"),
		RetentionDays:   rapid.Int().Draw(t, "retention"),
		Anchor:          rapid.Int64().Draw(t, "anchor"),
		LastEventAt:     rapid.Int64().Draw(t, "last"),
		Known:           rapid.Bool().Draw(t, "known"),
		Until:           rapid.Int64().Draw(t, "until"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "half-lives") {
		p.HalfLives = append(p.HalfLives, rapid.IntRange(1, strategy.MaxHalfLifeDays).Draw(t, "days"))
	}
	p.Total = rapid.IntRange(0, 20).Draw(t, "total")
	for i := range p.Total {
		a := affinity.Affinity{
			Facet: rapid.OneOf(rapid.SampledFrom(facets), rapid.String()).Draw(t, "facet"),
			Value: rapid.String().Draw(t, "value") + fmt.Sprint(i),
		}
		for range max(1, len(p.HalfLives)) {
			a.Scores = append(a.Scores, rapid.Float64Min(0).Draw(t, "score"))
		}
		p.Affinities = append(p.Affinities, a)
	}
	return p
}

func sortEvents(events []affinity.Event) {
	slices.SortStableFunc(events, func(a, b affinity.Event) int { return cmp.Compare(a.Time, b.Time) })
}
