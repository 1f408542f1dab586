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
	// Candidates whose rounded scores are equal lie in two parts at most, because a part is
	// longer than the distance of such scores.
	if !positive(parts) || near*max(high, -low)*parts >= 1 { // all scores are equal, or nearly
		slices.SortFunc(order, w.compare)
		return order
	}
	// Rounding keeps the order of numbers, so no score gets into a later part than a
	// lower one.
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
	before, start := int32(0), int32(0) // the starts of a part and of the next one
	for _, end := range w.ends[:len(order)] {
		if end == start {
			continue
		}
		if end-start > 1 {
			slices.SortFunc(w.spread[start:end], w.compare)
		}
		if start > 0 && w.compare(w.spread[start], w.spread[start-1]) < 0 {
			slices.SortFunc(w.spread[before:end], w.compare) // equal scores lie in both
		}
		before, start = start, end
	}
	return w.spread
}
