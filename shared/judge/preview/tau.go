package preview

import (
	"cmp"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// RankCorrelation measures how similarly two lists of affinities rank, by their
// first scores: 1 for the same order, -1 for the reverse. It is Kendall's
// tau-b,
//
//	tau-b = (C - D) / sqrt((n0 - n1) (n0 - n2))
//
// over all n values that are in either list. A value that a list lacks scores 0
// there. There are n0 = n (n-1)/2 pairs of values. Both lists rank C pairs in
// the same order and D pairs in opposite orders; n1 pairs are equal in the
// first list, n2 in the second. (M. G. Kendall, The treatment of ties in
// ranking problems, Biometrika 33, 1945.) The formula has no value if all n
// values score the same in one of the lists. Then RankCorrelation returns 1 if
// that holds for both lists and both or neither are empty, else 0.
//
// Scores that differ by no more than rounding are equal. It takes time in
// proportion to n log n.
func RankCorrelation(before, after []affinity.Affinity) float64 {
	return correlation(union(before, after), (len(before) == 0) == (len(after) == 0))
}

// correlation is RankCorrelation of the values of two lists. alike reports that both or
// neither are empty.
func correlation(pairs []pair, alike bool) float64 {
	points := make([]point, len(pairs))
	for i, p := range pairs {
		points[i] = point{affinity.Rounded(p.before), affinity.Rounded(p.after)}
	}
	n := int64(len(points))
	all := n * (n - 1) / 2
	t := knight(points)
	rankedBefore, rankedAfter := all-t.before, all-t.after
	if rankedBefore == 0 || rankedAfter == 0 {
		if rankedBefore == rankedAfter && alike {
			return 1
		}
		return 0
	}
	// C + D is the number of pairs that are tied in neither list.
	difference := all - t.before - t.after + t.both - 2*t.discordant
	tau := float64(difference) / math.Sqrt(float64(rankedBefore)*float64(rankedAfter))
	return max(-1, min(1, tau)) // rounding may exceed the bounds
}

// point is a value by its scores in both lists.
type point struct{ before, after float64 }

// ties counts pairs: equal in one list, in both, and ranked in opposite order.
type ties struct{ before, after, both, discordant int64 }

// knight counts by sorting (W. R. Knight, A computer method for calculating
// Kendall's tau with ungrouped data, JASA 61, 1966): in the order of the first
// list, and of the second where the first has ties, each exchange that a merge
// sort by the second list makes is a discordant pair.
func knight(points []point) ties {
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.before, b.before), cmp.Compare(a.after, b.after))
	})
	var t ties
	t.before = tied(points, func(a, b point) bool { return a.before == b.before })
	t.both = tied(points, func(a, b point) bool { return a == b })
	t.discordant = exchanges(points, make([]point, len(points)))
	t.after = tied(points, func(a, b point) bool { return a.after == b.after })
	return t
}

// tied counts the pairs within runs of equal points.
func tied(points []point, same func(a, b point) bool) int64 {
	var n, run int64
	for i := 1; i < len(points); i++ {
		if run++; !same(points[i-1], points[i]) {
			run = 0
		}
		n += run
	}
	return n
}

// exchanges sorts by the second list and counts the pairs that were out of
// order.
func exchanges(points, spare []point) int64 {
	if len(points) < 2 {
		return 0
	}
	half := len(points) / 2
	n := exchanges(points[:half], spare) + exchanges(points[half:], spare)
	merged, left, right := spare[:0], points[:half], points[half:]
	for len(left) > 0 && len(right) > 0 {
		if right[0].after < left[0].after {
			n += int64(len(left))
			merged, right = append(merged, right[0]), right[1:]
		} else {
			merged, left = append(merged, left[0]), left[1:]
		}
	}
	merged = append(append(merged, left...), right...)
	copy(points, merged)
	return n
}
