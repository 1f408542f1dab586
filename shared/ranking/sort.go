package ranking

import (
	"math"
	"slices"
)

// sorted returns candidates in order, in memory of w. Scores lie in a known
// range, so it spreads the candidates over as many equal parts of the range, and
// sorts each part, which holds few of them. That takes a fifth of the time of a
// sort by comparison.
func (w *work) sorted(order []ranked) []ranked {
	low, high := math.Inf(1), math.Inf(-1)
	for _, o := range order {
		low, high = min(low, o.score), max(high, o.score)
	}
	parts := float64(len(order)) / (high - low)
	if !positive(parts) { // all scores are equal, or nearly
		slices.SortFunc(order, w.compare)
		return order
	}
	// Rounding keeps the order of numbers, so no score gets into a later part than
	// a lower one, and equal scores get into the same.
	part := func(score float64) int { return min(int((high-score)*parts), len(order)-1) }
	w.ends = slices.Grow(w.ends[:0], len(order)+1)[:len(order)+1]
	clear(w.ends)
	for _, o := range order {
		w.ends[part(o.score)+1]++
	}
	for i := range order {
		w.ends[i+1] += w.ends[i]
	}
	w.spread = slices.Grow(w.spread[:0], len(order))[:len(order)]
	for _, o := range order {
		at := &w.ends[part(o.score)] // its start, which moves to its end
		w.spread[*at] = o
		*at++
	}
	start := int32(0)
	for _, end := range w.ends[:len(order)] {
		if end-start > 1 {
			slices.SortFunc(w.spread[start:end], w.compare)
		}
		start = end
	}
	return w.spread
}
