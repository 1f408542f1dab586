package affinity

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// ranked is a filter on its way into a profile. It is smaller than an Affinity, which makes sorting twice as fast.
type ranked struct {
	first       float64 // its first score
	facet, slot int32
}

// ranks returns what scores in the order of a profile: that of byRank. It holds until the next call.
func (sc *Scorer) ranks() []ranked {
	ranks := sc.order[:0]
	for facet := range sc.tables {
		for _, slot := range sc.tables[facet].touched {
			if sums := sc.sumsAt(int32(facet), slot); sums[0] > 0 || !nothing(sums) {
				ranks = append(ranks, ranked{sums[0], int32(facet), slot})
			}
		}
	}
	sc.order = ranks
	if len(ranks) < fewRanked {
		slices.SortFunc(ranks, sc.compare)
		return ranks
	}
	return sc.sortSpread(ranks)
}

func (sc *Scorer) compare(a, b ranked) int {
	switch {
	case a.first > b.first:
		return -1
	case a.first < b.first:
		return 1
	}
	if a.facet != b.facet {
		return strings.Compare(sc.c.facets[a.facet], sc.c.facets[b.facet])
	}
	entries := sc.tables[a.facet].entries
	return strings.Compare(entries[a.slot].name, entries[b.slot].name)
}

const (
	fewRanked  = 24 // below, sorting by comparison is as fast
	maxBuckets = 1 << 10
)

// sortSpread sorts by first throwing everything into buckets of scores, from high to low, about one each, and then
// sorting within those. The bits of a positive float are in its order, and about as far apart as its logarithm, over
// which scores spread well; if they do not, buckets are large and all is as slow as plain sorting.
func (sc *Scorer) sortSpread(ranks []ranked) []ranked {
	low, high := uint64(math.MaxUint64), uint64(0)
	for i := range ranks {
		b := math.Float64bits(ranks[i].first)
		low, high = min(low, b), max(high, b)
	}
	buckets := min(maxBuckets, 1<<bits.Len(uint(len(ranks))))
	shift := max(0, bits.Len64(high-low)-bits.Len(uint(buckets-1)))
	var ends [maxBuckets + 1]int32
	for i := range ranks {
		ends[(high-math.Float64bits(ranks[i].first))>>shift&(maxBuckets-1)+1]++
	}
	for i := range buckets {
		ends[i+1] += ends[i]
	}
	sc.spare = slices.Grow(sc.spare[:0], len(ranks))[:len(ranks)]
	sorted := sc.spare
	for _, r := range ranks {
		end := &ends[(high-math.Float64bits(r.first))>>shift&(maxBuckets-1)]
		sorted[*end] = r
		*end++
	}
	start := int32(0)
	for _, end := range ends[:buckets] { // each has moved to where the next begins
		if end-start > 1 {
			slices.SortFunc(sorted[start:end], sc.compare)
		}
		start = end
	}
	return sorted
}
