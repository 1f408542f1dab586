package affinity

import (
	"math"
	"math/bits"
	"slices"
	"strings"
)

// ranked is a filter while the profile is sorted. It is smaller than an
// Affinity, which makes sorting twice as fast.
type ranked struct {
	first       float64 // the filter's first score
	facet, slot int32
}

// ranks returns the filters that score, in the order of byRank. The slice is
// valid until the next call.
func (sc *Scorer) ranks() []ranked {
	ranks := sc.order[:0]
	for facet := range sc.tables {
		for _, slot := range sc.tables[facet].touched {
			if sums := sc.sumsAt(int32(facet), slot); sums[0] > 0 || !allZero(sums) {
				ranks = append(ranks, ranked{sums[0], int32(facet), slot})
			}
		}
	}
	sc.order = ranks
	if len(ranks) < minBucketSort {
		sc.sort(ranks)
		return ranks
	}
	return sc.bucketSort(ranks)
}

// sort sorts filters by comparison. A few are sorted by insertion, which calls compare for
// equal scores only.
func (sc *Scorer) sort(ranks []ranked) {
	if len(ranks) >= minBucketSort {
		slices.SortFunc(ranks, sc.compare)
		return
	}
	for i := 1; i < len(ranks); i++ {
		r, to := ranks[i], i
		for ; to > 0; to-- {
			before := ranks[to-1]
			if before.first > r.first || before.first == r.first && sc.compare(before, r) < 0 {
				break
			}
			ranks[to] = before
		}
		ranks[to] = r
	}
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
	minBucketSort = 24 // below it, sorting by comparison is as fast
	maxBuckets    = 1 << 10
)

// bucketSort distributes the filters over buckets of scores, from high to low,
// about one filter a bucket, and then sorts each bucket. The bits of positive
// floats order like the floats and are spaced like their logarithms, over which
// scores spread evenly. If they do not, bucketSort is as slow as a plain sort.
func (sc *Scorer) bucketSort(ranks []ranked) []ranked {
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
			sc.sort(sorted[start:end])
		}
		start = end
	}
	return sorted
}
