package ranking_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// benchmark is a request of a shop: objects with the given number of filters,
// some in facets that the strategy does not score, and a user with affinities, a
// full session and pairs.
func benchmark(candidates, filters, affinities int) (strategy.Strategy, *ranking.Query) {
	random := rand.New(rand.NewPCG(1, 2))
	facet := func(i int) string { return fmt.Sprintf("facet%d", i) }
	value := func() string { return fmt.Sprintf("value %d", random.IntN(50)) }
	var s strategy.Strategy
	s.EventsScoring = []strategy.EventScore{{EventName: "View", EventType: event.View, Score: 10}}
	for i := range 6 {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet(i), Score: 10 + i})
	}
	q := &ranking.Query{Now: now, HighestCount: 1000, Frequencies: &ranking.Frequencies{Objects: 5000, Filters: map[event.Filter]int{}}}
	for range candidates {
		var carried []event.Filter
		for i := range filters {
			carried = append(carried, event.Filter{Facet: facet(i % 8), Value: value()})
		}
		id := fmt.Sprintf("object-%d", random.IntN(100_000))
		q.Candidates = append(q.Candidates, ranking.Candidate{
			ObjectID: id, Object: ranking.Compile(carried), Count: float64(random.IntN(1000)), Dated: true, Published: now - random.Int64N(1e10),
		})
	}
	for range affinities {
		a := affinity.Affinity{Facet: facet(random.IntN(6)), Value: value(), Scores: []float64{random.Float64()}}
		q.Affinities = append(q.Affinities, a)
		q.Frequencies.Filters[event.Filter{Facet: a.Facet, Value: a.Value}] = random.IntN(5000)
	}
	for range affinity.MaxSessionEvents {
		e := affinity.Event{Time: now, Type: event.View, Name: "View"}
		for i := range 6 {
			e.Counts = append(e.Counts, affinity.Count{Facet: facet(i), Value: value(), N: 1})
		}
		q.Session.Events = append(q.Session.Events, e)
	}
	for range 3 {
		a := ranking.Neighbours{Past: last("A"), Events: 100}
		for range 50 {
			b := q.Candidates[random.IntN(candidates)].ObjectID
			a.Pairs = append(a.Pairs, ranking.Pair{ObjectID: b, Count: float64(1 + random.IntN(20))})
		}
		q.Neighbours = append(q.Neighbours, a)
	}
	return s, q
}

func BenchmarkRank(b *testing.B) {
	for _, size := range []struct{ candidates, filters, affinities int }{
		{1000, 1, 200}, {1000, 8, 200}, {1000, 100, 200}, {5000, 8, 200}, {1000, 8, 0}, {1000, 8, 2000},
	} {
		for _, limit := range []int{20, 0} {
			b.Run(fmt.Sprintf("candidates=%d/filters=%d/affinities=%d/limit=%d", size.candidates, size.filters, size.affinities, limit), func(b *testing.B) {
				s, q := benchmark(size.candidates, size.filters, size.affinities)
				q.Limit = limit
				r := ranking.New(s)
				b.ReportAllocs()
				for b.Loop() {
					r.Rank(q)
				}
			})
		}
	}
}

// BenchmarkDiversity compares rankings with and without diversity.
func BenchmarkDiversity(b *testing.B) {
	for _, candidates := range []int{100, 1000, 5000} {
		for _, limit := range []int{20, 100} {
			for _, d := range []*strategy.Diversity{nil, {}, {Lambda: 0.5}, {Facet: "facet1"}, {Facet: "facet1", MaxPerValue: 3}} {
				name := "none"
				if d != nil {
					name = fmt.Sprintf("lambda=%g,facet=%s,max=%d", d.LambdaOrDefault(), d.Facet, d.MaxPerValue)
				}
				b.Run(fmt.Sprintf("candidates=%d/limit=%d/%s", candidates, limit, name), func(b *testing.B) {
					s, q := benchmark(candidates, 8, 200)
					q.Limit, q.Diversity = limit, d
					r := ranking.New(s)
					b.ReportAllocs()
					for b.Loop() {
						r.Rank(q)
					}
				})
			}
		}
	}
}

// BenchmarkDiversityOfEqualScores is the most work: every candidate has the same
// score, as for an unknown user of an index without statistics.
func BenchmarkDiversityOfEqualScores(b *testing.B) {
	for _, filters := range []int{1, 8, 20, 100} {
		for _, limit := range []int{20, 0} {
			b.Run(fmt.Sprintf("candidates=5000/filters=%d/limit=%d", filters, limit), func(b *testing.B) {
				s, q := benchmark(5000, filters, 0)
				q.Session, q.Neighbours, q.HighestCount, q.Limit, q.Diversity = affinity.Session{}, nil, 0, limit, &strategy.Diversity{}
				r := ranking.New(s)
				for b.Loop() {
					r.Rank(q)
				}
			})
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	s, q := benchmark(1000, 8, 200)
	q.Limit, q.Explain = 20, true
	r := ranking.New(s)
	b.ReportAllocs()
	for b.Loop() {
		r.Rank(q)
	}
}

func BenchmarkReference(b *testing.B) {
	s, q := benchmark(1000, 8, 200)
	for b.Loop() {
		ranking.Reference(s, q)
	}
}

func BenchmarkCompile(b *testing.B) {
	var filters []event.Filter
	for i := range 8 {
		filters = append(filters, event.Filter{Facet: fmt.Sprintf("facet%d", i), Value: "a value"})
	}
	b.ReportAllocs()
	for b.Loop() {
		ranking.Compile(filters)
	}
}

// BenchmarkExplainImport explains 5,000 candidates to a user whose last instant names
// 1,000 objects, as that of an import may.
func BenchmarkExplainImport(b *testing.B) {
	s, q := benchmark(5000, 4, 50)
	q.Explain = true
	for n := len(q.Neighbours); n < 1000; n++ {
		a := ranking.Neighbours{Past: last(fmt.Sprintf("A%d", n)), Events: 100}
		for i := range 50 {
			a.Pairs = append(a.Pairs, ranking.Pair{ObjectID: q.Candidates[(n*50+i)%5000].ObjectID, Count: 1})
		}
		q.Neighbours = append(q.Neighbours, a)
	}
	r := ranking.New(s)
	b.ReportAllocs()
	for b.Loop() {
		r.Rank(q)
	}
}
