package ranking_test

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TestRoundingDecidesNoPlace ranks objects whose scores are known without rounding: with
// whole scores of filters an affinity is sum / root(filters) but for a factor that all
// objects share, and its square is a fraction.
func TestRoundingDecidesNoPlace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, contrast := range []strategy.Contrast{strategy.ContrastNone, strategy.ContrastIDF} {
		decided := 0
		for range 600 {
			s, q, squares := wholeScores(random, contrast)
			got := ids10(ranking.New(s).Rank(q))
			order := make([]int, len(q.Candidates))
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(a, b int) int {
				return cmp.Or(squares[b].Cmp(squares[a]), strings.Compare(q.Candidates[a].ObjectID, q.Candidates[b].ObjectID))
			})
			var want []string
			for _, i := range order[:10] {
				want = append(want, q.Candidates[i].ObjectID)
			}
			if !slices.Equal(got, want) {
				if decided++; decided == 1 {
					t.Errorf("contrast %q: the first ten are %v, want %v", contrast, got, want)
				}
			}
		}
		if decided > 0 {
			t.Errorf("contrast %q: rounding decides %d of 600 top tens", contrast, decided)
		}
	}
}

// wholeScores draws a query, with the squares of the affinities of its candidates but
// for a factor. With a contrast all filters have the same.
func wholeScores(random *rand.Rand, contrast strategy.Contrast) (strategy.Strategy, *ranking.Query, []*big.Rat) {
	s := strategy.Strategy{PersonalizationImpact: 100}
	q := &ranking.Query{Now: now, Limit: 10, Frequencies: &ranking.Frequencies{Objects: 100}}
	for f := range 6 {
		facet := fmt.Sprintf("facet%d", f)
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: 1})
		for v := range 8 {
			q.Affinities = append(q.Affinities, affinity.Affinity{Facet: facet, Value: fmt.Sprint(v), Scores: []float64{float64(random.IntN(10))}})
		}
	}
	full := s.RankingOrDefault()
	full.Contrast = contrast
	s.Ranking = full.Ranking()
	var squares []*big.Rat
	for range 200 {
		var carried []event.Filter
		sum, n := 0.0, 1+random.IntN(6)
		for _, f := range random.Perm(6)[:n] {
			a := q.Affinities[8*f+random.IntN(8)]
			carried = append(carried, event.Filter{Facet: a.Facet, Value: a.Value})
			sum += a.Scores[0]
		}
		q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: fmt.Sprintf("object-%08d", random.IntN(1e8)), Object: ranking.Compile(carried)})
		squares = append(squares, big.NewRat(int64(sum*sum), int64(n)))
	}
	return s, q, squares
}

func ids10(r ranking.Result) (ids []string) {
	for _, item := range r.Items {
		ids = append(ids, item.ObjectID)
	}
	return ids
}

// The order of what a query lists, and the names of the facets, decide nothing: neither
// in the fast form nor in the reference.
func TestOrderOfInputDecidesNoPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, q := drawStrategy(t), drawQuery(t)
		for i := range q.Candidates {
			q.Candidates[i].ObjectID += fmt.Sprint("-", i)
		}
		if rapid.Bool().Draw(t, "diverse") {
			q.Diversity = drawDiversity(t)
		}
		permuted := *q
		permuted.Candidates = rapid.Permutation(q.Candidates).Draw(t, "candidates in another order")
		permuted.Affinities = rapid.Permutation(q.Affinities).Draw(t, "affinities in another order")
		permuted.Neighbours = rapid.Permutation(q.Neighbours).Draw(t, "neighbours in another order")
		for i := range permuted.Candidates {
			if o := permuted.Candidates[i].Object; o != nil {
				permuted.Candidates[i].Object = ranking.Compile(rapid.Permutation(o.Filters()).Draw(t, "filters in another order"))
			}
		}
		permuted.Session.Events = slices.Clone(q.Session.Events)
		for i := range permuted.Session.Events {
			e := &permuted.Session.Events[i]
			e.Counts = rapid.Permutation(e.Counts).Draw(t, "counts in another order")
		}
		checkEqual(t, ranking.New(s).Rank(&permuted), ranking.New(s).Rank(q))
		checkEqual(t, ranking.Reference(s, &permuted), ranking.Reference(s, q))
	})
}

func checkEqual(t *rapid.T, got, want ranking.Result) {
	same := slices.EqualFunc(got.Items, want.Items, func(a, b ranking.Item) bool { return a.ObjectID == b.ObjectID && a.Score == b.Score })
	if !same {
		t.Fatalf("items = %v, want %v", got.Items, want.Items)
	}
}

// Objects that match the same scores have the same score, in whatever facets they match
// them.
func TestEqualMatchesTie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 6
		scores := rapid.SliceOfN(rapid.Float64Range(1e-9, 1e9), n, n).Draw(t, "scores")
		var s strategy.Strategy
		q := &ranking.Query{Now: now}
		for f := range n {
			facet := fmt.Sprint("facet", f)
			s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: 1})
			for v, score := range scores {
				q.Affinities = append(q.Affinities, affinity.Affinity{Facet: facet, Value: fmt.Sprint(v), Scores: []float64{score}})
			}
		}
		for i := range 5 {
			var carried []event.Filter
			for facet, value := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "values by facet") {
				carried = append(carried, event.Filter{Facet: fmt.Sprint("facet", facet), Value: fmt.Sprint(value)})
			}
			q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: fmt.Sprint("object-", 9-i), Object: ranking.Compile(carried)})
		}
		for name, r := range map[string]ranking.Result{"Rank": ranking.New(s).Rank(q), "Reference": ranking.Reference(s, q)} {
			if got := ids10(r); !slices.IsSorted(got) || r.Items[0].Score != r.Items[4].Score {
				t.Fatalf("%s: equal matches are in the order %v", name, r.Items)
			}
		}
	})
}
