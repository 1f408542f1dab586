package ranking_test

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const now = 1_700_000_000_000 // ms

// The few names make filters of objects, profiles and sessions meet.
var (
	facets = rapid.SampledFrom([]string{"brand", "colour", "size", "shape"})
	values = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
	ids    = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("o%d", rapid.IntRange(0, 15).Draw(t, "object")) })
	// numbers includes those that break careless arithmetic.
	numbers = rapid.OneOf(
		rapid.Float64Range(0, 100),
		rapid.SampledFrom([]float64{0, 1, 1, 2, -1, 1e-300, 5e-324, 1e300, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}),
	)
	filters = rapid.Custom(func(t *rapid.T) event.Filter {
		return event.Filter{Facet: facets.Draw(t, "facet"), Value: values.Draw(t, "value")}
	})
	weights = rapid.SampledFrom([]int{0, 0, 1, 30, 100})
	times   = rapid.OneOf(rapid.Int64Range(now-40*24*3_600_000, now+3_600_000), rapid.SampledFrom([]int64{0, math.MinInt64, math.MaxInt64}))
)

func drawStrategy(t *rapid.T) strategy.Strategy {
	s := strategy.Strategy{PersonalizationImpact: rapid.IntRange(0, 100).Draw(t, "impact")}
	for _, name := range []string{"View", "Buy", "Other"} {
		s.EventsScoring = append(s.EventsScoring, strategy.EventScore{
			EventType: event.View, EventName: name, Score: rapid.SampledFrom([]int{0, 1, 50, 100}).Draw(t, name),
		})
	}
	for _, facet := range []string{"brand", "colour", "size"} {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{
			FacetName: facet, Score: rapid.SampledFrom([]int{0, 1, 20, 100}).Draw(t, facet),
		})
	}
	if rapid.Bool().Draw(t, "aliases") {
		s.Aliases = map[string]map[string]string{
			"brand": {"b": "a", "c": "a", "x": "d"}, "colour": {"a": "f"}, "shape": {"a": "b"},
		}
	}
	s.IgnoredValues = rapid.SampledFrom([][]string{nil, nil, {"B"}, {"a", "D"}}).Draw(t, "ignored")
	if rapid.IntRange(0, 3).Draw(t, "allows") == 0 {
		s.AllowedValues = map[string]strategy.ValueSet{"brand": strategy.SetOf("a", "b", "d"), "shape": strategy.SetOf("a")}
	}
	if rapid.Bool().Draw(t, "ranking") {
		s.Ranking = drawRanking(t)
	}
	return s
}

func drawRanking(t *rapid.T) *strategy.Ranking {
	halfLife := rapid.SampledFrom([]strategy.HalfLife{strategy.Days(1), strategy.Days(30)})
	session := rapid.OneOf(halfLife, rapid.SampledFrom([]strategy.HalfLife{strategy.Events(0.1), strategy.Events(2), strategy.Events(50)}))
	return strategy.FullRanking{
		Contrast:   rapid.SampledFrom([]strategy.Contrast{strategy.ContrastNone, strategy.ContrastIDF}).Draw(t, "contrast"),
		Session:    strategy.FullSession{HalfLife: session.Draw(t, "session"), Weight: weights.Draw(t, "ws")},
		Popularity: strategy.FullPopularity{HalfLife: halfLife.Draw(t, "popularity"), Weight: weights.Draw(t, "wp")},
		Pairs:      strategy.FullPairs{Weight: weights.Draw(t, "wc")},
		Sequence:   strategy.FullPairs{Weight: 5 * weights.Draw(t, "wq")},
		Neighbours: strategy.FullPairs{Weight: 5 * weights.Draw(t, "wn")},
		Freshness:  strategy.FullFreshness{Attribute: "day", HalfLife: halfLife.Draw(t, "freshness"), Weight: weights.Draw(t, "wf")},
	}.Ranking()
}

func drawQuery(t *rapid.T) *ranking.Query {
	q := &ranking.Query{
		Now: now, HalfLife: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "half-life"),
		HighestCount: numbers.Draw(t, "highest count"),
		Seen:         rapid.SampledFrom([]ranking.Seen{"", ranking.Keep, ranking.Demote, ranking.Exclude}).Draw(t, "seen mode"),
		Limit:        rapid.SampledFrom([]int{0, 0, 1, 3, 20}).Draw(t, "limit"),
		Explain:      rapid.Bool().Draw(t, "explain"),
	}
	for range rapid.IntRange(0, 12).Draw(t, "affinities") {
		f := filters.Draw(t, "affinity")
		q.Affinities = append(q.Affinities, affinity.Affinity{
			Facet: f.Facet, Value: f.Value, Scores: []float64{numbers.Draw(t, "score"), numbers.Draw(t, "second score")},
		})
	}
	leaveOutCoarse(q.Affinities)
	for range rapid.IntRange(0, 5).Draw(t, "events") {
		e := affinity.Event{Time: times.Draw(t, "time"), Type: event.View, Name: rapid.SampledFrom([]string{"View", "Buy", "Off"}).Draw(t, "name")}
		for range rapid.IntRange(0, 3).Draw(t, "counts") {
			f := filters.Draw(t, "count")
			e.Counts = append(e.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: rapid.IntRange(1, 20).Draw(t, "n")})
		}
		q.Session.Events = append(q.Session.Events, e)
	}
	for range rapid.IntRange(0, 3).Draw(t, "neighbours") {
		a := ranking.Neighbours{Past: last(ids.Draw(t, "A")), Events: numbers.Draw(t, "events of A")}
		a.Last, a.Age = rapid.Bool().Draw(t, "last"), rapid.IntRange(0, 12).Draw(t, "age")
		for _, list := range []*[]ranking.Pair{&a.Pairs, &a.Sequence, &a.Related} {
			for range rapid.IntRange(0, 3).Draw(t, "links") {
				*list = append(*list, ranking.Pair{ObjectID: ids.Draw(t, "B"), Count: numbers.Draw(t, "link")})
			}
		}
		q.Neighbours = append(q.Neighbours, a)
	}
	if rapid.Bool().Draw(t, "statistics") {
		q.Frequencies = &ranking.Frequencies{
			Objects: rapid.IntRange(0, 50).Draw(t, "objects"),
			Filters: rapid.MapOfN(filters, rapid.IntRange(-1, 60), 0, 10).Draw(t, "frequencies"),
		}
	}
	if rapid.Bool().Draw(t, "override") {
		impact := rapid.IntRange(0, 100).Draw(t, "impact of the query")
		q.Impact = &impact
	}
	q.Candidates = drawCandidates(t)
	return q
}

func drawDiversity(t *rapid.T) *strategy.Diversity {
	d := &strategy.Diversity{
		Facet:  rapid.SampledFrom([]string{"", "brand", "colour", "unknown"}).Draw(t, "facet of diversity"),
		Lambda: rapid.SampledFrom([]float64{0, 1e-9, 0.1, 0.5, 0.7, 0.99, 1}).Draw(t, "lambda"),
	}
	if d.Facet != "" {
		d.MaxPerValue = rapid.IntRange(0, 3).Draw(t, "max per value")
	}
	return d
}

func drawCandidates(t *rapid.T) []ranking.Candidate {
	var candidates []ranking.Candidate
	relevancies := rapid.SampledFrom([]*rapid.Generator[bool]{rapid.Just(false), rapid.Just(true), rapid.Bool()}).Draw(t, "relevancies")
	for range rapid.IntRange(0, 20).Draw(t, "candidates") {
		c := ranking.Candidate{
			ObjectID:  ids.Draw(t, "id"),
			Relevancy: numbers.Draw(t, "relevancy"), HasRelevancy: relevancies.Draw(t, "has relevancy"),
			Count:     numbers.Draw(t, "popularity"),
			Published: times.Draw(t, "published"), Dated: rapid.Bool().Draw(t, "dated"),
			Seen: rapid.Bool().Draw(t, "seen"),
		}
		if rapid.IntRange(0, 9).Draw(t, "in catalog") > 0 {
			c.Object = ranking.Compile(rapid.SliceOfN(filters, 0, 10).Draw(t, "filters"))
		}
		candidates = append(candidates, c)
	}
	return candidates
}

// leaveOutCoarse leaves out scores whose shares of the highest are so small that floating
// point rounds them coarsely, because two formulas then differ when nothing else matches.
func leaveOutCoarse(affinities []affinity.Affinity) {
	for n := range 2 {
		highest := 0.0
		for _, a := range affinities {
			if s := a.Scores[n]; !math.IsInf(s, 0) {
				highest = max(highest, s)
			}
		}
		for _, a := range affinities {
			if s := a.Scores[n]; s > 0 && s/highest < 0x1p-1022 {
				a.Scores[n] = 0
			}
		}
	}
}
