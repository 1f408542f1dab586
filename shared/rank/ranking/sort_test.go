package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortedEqualsSortByComparison(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, score := range map[string]func() float64{
		"spread":    random.Float64,
		"equal":     func() float64 { return 0.25 },
		"few":       func() float64 { return float64(random.IntN(3)) / 10 },
		"skewed":    func() float64 { return math.Exp2(-60 * random.Float64()) },
		"outlier":   func() float64 { return 1e9 * float64(1/(1+random.IntN(40))) },
		"neighbour": func() float64 { return math.Nextafter(1, float64(2*random.IntN(2))) },
		"negative":  func() float64 { return random.NormFloat64() },
		// Equal but for the last bits, on both sides of where parts may end.
		"clusters": func() float64 { return float64(1+random.IntN(5)) / 7 * (1 + float64(random.IntN(9)-4)*0x1p-52) },
		"ulps":     func() float64 { return 1 + float64(random.IntN(9))*0x1p-52 },
		"grid":     func() float64 { return 0.3 + float64(random.IntN(40))*3e-13 },
		"range":    func() float64 { return math.MaxFloat64 * float64(random.IntN(3)-1) },
		"tiny":     func() float64 { return math.SmallestNonzeroFloat64 * float64(random.IntN(9)) },
	} {
		w := &work{q: &Query{}}
		for _, n := range []int{300, 0, 1, 2, 40} {
			w.q.Candidates, w.order = nil, nil
			for i := range n {
				w.q.Candidates = append(w.q.Candidates, Candidate{ObjectID: fmt.Sprint("o", random.IntN(200))})
				w.order = append(w.order, ranked{score(), int32(i)})
			}
			want := slices.SortedFunc(slices.Values(w.order), w.compare)
			if got := w.sorted(w.order); !slices.Equal(got, want) {
				t.Errorf("%s, %d candidates: got %v, want %v", name, n, got, want)
			}
		}
	}
}

func BenchmarkSorted(b *testing.B) {
	const n = 1000
	random := rand.New(rand.NewPCG(1, 2))
	w := &work{q: &Query{Candidates: make([]Candidate, n)}}
	given, order := make([]ranked, n), make([]ranked, n)
	for i := range given {
		given[i] = ranked{random.NormFloat64(), int32(i)}
	}
	b.Run("spread", func(b *testing.B) {
		for b.Loop() {
			copy(order, given)
			w.sorted(order)
		}
	})
	b.Run("comparison", func(b *testing.B) {
		for b.Loop() {
			copy(order, given)
			slices.SortFunc(order, w.compare)
		}
	})
}
