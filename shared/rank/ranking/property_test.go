package ranking_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/ranking"
)

const tolerance = 1e-11 // scores have 12 significant digits

func TestRankEqualsReference(t *testing.T) { rapid.Check(t, rankEqualsReference) }

func FuzzRankEqualsReference(f *testing.F) { f.Fuzz(rapid.MakeFuzz(rankEqualsReference)) }

func rankEqualsReference(t *rapid.T) {
	s, q := drawStrategy(t), drawQuery(t)
	got := ranking.New(s).Rank(q)
	want := ranking.Reference(s, q)

	all := *q
	all.Limit = 0
	byCandidate := map[int]ranking.Item{}
	for _, item := range ranking.Reference(s, &all).Items {
		byCandidate[item.Candidate] = item
	}
	if got.Fallback != want.Fallback || len(got.Items) != len(want.Items) || got.Items == nil {
		t.Fatalf("fallback %q, %d items; the reference has %q, %d", got.Fallback, len(got.Items), want.Fallback, len(want.Items))
	}
	for i, item := range got.Items {
		expected, ok := byCandidate[item.Candidate]
		switch {
		case !ok:
			t.Fatalf("item %d is excluded or listed twice: %v", i, item)
		case item.ObjectID != expected.ObjectID || !near(item.Score, expected.Score):
			t.Fatalf("item %d = %v, the reference has %v", i, item, expected)
		case !near(item.Score, want.Items[i].Score): // candidates may change places only within rounding
			t.Fatalf("score %d = %v, the reference has %v", i, item.Score, want.Items[i].Score)
		case !sameFeatures(item.Features, expected.Features):
			t.Fatalf("features of %d = %v, the reference has %v", i, item.Features, expected.Features)
		}
		delete(byCandidate, item.Candidate)
	}
	checkOrder(t, q, got.Items)
	checkOrder(t, q, want.Items)
}

func checkOrder(t *rapid.T, q *ranking.Query, items []ranking.Item) {
	sorted := slices.IsSortedFunc(items, func(a, b ranking.Item) int {
		switch {
		case a.Score != b.Score:
			return compare(b.Score, a.Score)
		case a.ObjectID != b.ObjectID:
			return compare(a.ObjectID, b.ObjectID)
		}
		return compare(a.Candidate, b.Candidate)
	})
	if !sorted {
		t.Fatalf("items are not in the order of score, objectID, place: %v", items)
	}
	for _, item := range items {
		if math.IsNaN(item.Score) || math.IsInf(item.Score, 0) {
			t.Fatalf("score of %s = %v", item.ObjectID, item.Score)
		}
		if !q.Explain {
			if item.Features != nil {
				t.Fatalf("%s has features, but the query does not ask to explain", item.ObjectID)
			}
			continue
		}
		sum := 0.0
		for _, f := range item.Features {
			sum += f.Value
			parts := 0.0
			for _, p := range f.Parts {
				parts += p.Value
			}
			if f.Parts != nil && !near(parts, f.Value) {
				t.Fatalf("parts of %s add up to %v, want %v: %v", f.Name, parts, f.Value, f.Parts)
			}
		}
		if !near(sum, item.Score) {
			t.Fatalf("features of %s add up to %v, want %v", item.ObjectID, sum, item.Score)
		}
	}
}

func compare[T float64 | string | int](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func near(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b)) }

// visible leaves out features so small that rounding decides whether they are 0.
func visible(features []ranking.Feature) []ranking.Feature {
	return slices.DeleteFunc(slices.Clone(features), func(f ranking.Feature) bool { return math.Abs(f.Value) < 1e-300 })
}

// sameFeatures ignores the order of parts, in which rounding may decide.
func sameFeatures(a, b []ranking.Feature) bool {
	return slices.EqualFunc(visible(a), visible(b), func(a, b ranking.Feature) bool {
		parts := map[string]float64{}
		for _, p := range b.Parts {
			parts[p.Name] = p.Value
		}
		for _, p := range a.Parts {
			if value, ok := parts[p.Name]; !ok || !near(p.Value, value) {
				return false
			}
		}
		return a.Name == b.Name && near(a.Value, b.Value) && len(a.Parts) == len(b.Parts)
	})
}

// Multiplying by a power of 2 changes no digit, so the scores must be equal.
func TestScaledProfileRanksTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, q := drawStrategy(t), drawQuery(t)
		for i := range q.Affinities {
			q.Affinities[i].Scores = []float64{rapid.Float64Range(1e-3, 100).Draw(t, "ordinary"), 1}
		}
		want := ranking.New(s).Rank(q)
		factor := rapid.SampledFrom([]float64{0x1p-20, 0.5, 4, 0x1p30}).Draw(t, "factor")
		for i := range q.Affinities {
			q.Affinities[i].Scores[0] *= factor
		}
		checkSame(t, ranking.New(s).Rank(q), want)
	})
}

// The same candidates in another order have the same scores.
func TestShuffledCandidatesRankTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, q := drawStrategy(t), drawQuery(t)
		q.Limit = 0
		want := map[int]float64{}
		for _, item := range ranking.New(s).Rank(q).Items {
			want[item.Candidate] = item.Score
		}
		places := make([]int, len(q.Candidates))
		for i := range places {
			places[i] = i
		}
		places = rapid.Permutation(places).Draw(t, "places")
		shuffled := make([]ranking.Candidate, len(places))
		for i, place := range places {
			shuffled[i] = q.Candidates[place]
		}
		q.Candidates = shuffled
		for _, item := range ranking.New(s).Rank(q).Items {
			if place := places[item.Candidate]; item.Score != want[place] {
				t.Fatalf("%s scores %v, %v at its other place", item.ObjectID, item.Score, want[place])
			}
		}
	})
}

func checkSame(t *rapid.T, got, want ranking.Result) {
	same := slices.EqualFunc(got.Items, want.Items, func(a, b ranking.Item) bool {
		return a.Candidate == b.Candidate && a.Score == b.Score
	})
	if !same {
		t.Fatalf("items = %v, want %v", got.Items, want.Items)
	}
}
