package preview_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/judge/preview"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// list makes affinities of a facet: value v0 with the first score and so on, a
// score of 0 being absent.
func list(scores ...float64) []affinity.Affinity {
	var l []affinity.Affinity
	for i, s := range scores {
		if s > 0 {
			l = append(l, affinity.Affinity{Facet: "f", Value: fmt.Sprint("v", i), Scores: []float64{s}})
		}
	}
	return l
}

func TestRankCorrelation(t *testing.T) {
	for _, test := range []struct {
		name          string
		before, after []float64
		want          float64
	}{
		{"both empty", nil, nil, 1},
		{"one empty", nil, []float64{3, 2}, 0},
		{"the other empty", []float64{3, 2}, nil, 0},
		{"one value", []float64{3}, []float64{30}, 1},
		{"one value, gone", []float64{3}, nil, 0},
		{"one value for another", []float64{3, 0}, []float64{0, 3}, -1},
		{"the same order", []float64{9, 5, 1}, []float64{0.3, 0.2, 0.1}, 1},
		{"the reverse", []float64{9, 5, 1}, []float64{1, 2, 3}, -1},
		{"all equal in both", []float64{2, 2, 2}, []float64{7, 7, 7}, 1},
		{"all equal in one", []float64{2, 2, 2}, []float64{7, 8, 9}, 0},
		{"no ties, one exchange of three pairs", []float64{3, 2, 1}, []float64{2, 3, 1}, 1. / 3},
		// n0 = 6: of the pairs, one is tied in the first list, one in the
		// second, four are ranked alike: 4 / sqrt(5 x 5).
		{"ties", []float64{4, 3, 3, 1}, []float64{4, 4, 3, 1}, 0.8},
		// As [4 3 2 0] against [4 0 0 9]: 2 alike, 3 opposite, 1 tied in the
		// second.
		{"different members", []float64{4, 3, 2}, []float64{4, 0, 0, 9}, (2 - 3) / math.Sqrt(6*5)},
		{"rounding is no order", []float64{math.Nextafter(0.3, 1), 0.3}, []float64{5, 5}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := preview.RankCorrelation(list(test.before...), list(test.after...))
			if math.Abs(got-test.want) > 1e-15 {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// definition computes tau-b pair by pair.
func definition(before, after []float64) float64 {
	var concordant, discordant, tiedBefore, tiedAfter, all float64
	for i := range before {
		for j := range i {
			all++
			x, y := before[i]-before[j], after[i]-after[j]
			switch {
			case x*y > 0:
				concordant++
			case x*y < 0:
				discordant++
			}
			if x == 0 {
				tiedBefore++
			}
			if y == 0 {
				tiedAfter++
			}
		}
	}
	return (concordant - discordant) / math.Sqrt((all-tiedBefore)*(all-tiedAfter))
}

func TestRankCorrelationIsTauB(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		most := rapid.IntRange(1, 40).Draw(t, "most") // few different scores make ties
		scores := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, most), func(i int) float64 { return float64(i) }), n, n)
		before, after := scores.Draw(t, "before"), scores.Draw(t, "after")
		// A value that is not in either list is not compared.
		var x, y []float64
		for i := range before {
			if before[i] > 0 || after[i] > 0 {
				x, y = append(x, before[i]), append(y, after[i])
			}
		}
		got := preview.RankCorrelation(list(before...), list(after...))
		want := definition(x, y)
		if math.IsNaN(want) {
			if got != 0 && got != 1 {
				t.Fatalf("constant lists: %v", got)
			}
			return
		}
		if math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v, want %v", got, want)
		}
		if back := preview.RankCorrelation(list(after...), list(before...)); math.Abs(got-back) > 1e-12 {
			t.Fatalf("%v one way, %v the other", got, back)
		}
	})
}

// BenchmarkRankCorrelation compares two lists of 400 that share most.
func BenchmarkRankCorrelation(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	before, after := make([]float64, 440), make([]float64, 440)
	for i := range before {
		if i < 400 {
			before[i] = 1 + rnd.Float64()*100
		}
		if i >= 40 {
			after[i] = 1 + rnd.Float64()*100
		}
	}
	x, y := list(before...), list(after...)
	b.ReportAllocs()
	for b.Loop() {
		preview.RankCorrelation(x, y)
	}
}
