package rankers

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// items are the neighbours of items by the cosine of their users (Sarwar et al., Item-based
// collaborative filtering recommendation algorithms, WWW 2001):
//
//	weight(A, B) = users who turned to A and B / sqrt(users who turned to A x users who turned to B)
//
// An object scores the sum of the weights from the objects of the history, each times its recency.
type items struct {
	near []weighted
	recency
}

func newItems(t *training, r recency) *items {
	both := t.together()
	n := &items{near: make([]weighted, t.objects), recency: r}
	for a := range n.near {
		n.near[a] = best(both.row(a), func(x float64, b int32) float64 {
			return x / math.Sqrt(float64(t.turned[a])*float64(t.turned[b]))
		})
	}
	return n
}

// Score implements backtest.Order.
func (n *items) Score(history []backtest.Step, scores []float64) {
	n.each(history, func(a int32, weight float64) { n.near[a].addTo(scores, weight) })
}

// recency says what the objects of a history weigh: 2^-(steps after the object's last one / recency).
// 0 is the last step alone.
type recency float64

// recencies are those of the grids; the last is the whole history alike.
var recencies = []recency{0, 1, 3, 10, recency(math.Inf(1))}

func (r recency) String() string {
	switch {
	case r == 0:
		return "last step"
	case math.IsInf(float64(r), 1):
		return "whole history"
	}
	return fmt.Sprintf("half-life %g steps", float64(r))
}

// each calls do with each object of a history whose weight is above 0, by its number.
func (r recency) each(history []backtest.Step, do func(object int32, weight float64)) {
	last := map[int32]int{}
	for back, s := range slices.Backward(history) {
		for _, o := range s.Objects {
			if _, ok := last[o]; !ok {
				last[o] = len(history) - 1 - back
			}
		}
		if r == 0 {
			break
		}
	}
	for _, o := range slices.Sorted(maps.Keys(last)) {
		weight := 1.0
		if last[o] > 0 {
			weight = math.Exp2(-float64(last[o]) / float64(r))
		}
		do(o, weight)
	}
}

// objectsOf returns the objects of steps, each once, sorted.
func objectsOf(steps []backtest.Step) (objects []int32) {
	for _, s := range steps {
		objects = append(objects, s.Objects...)
	}
	slices.Sort(objects)
	return slices.Compact(objects)
}
