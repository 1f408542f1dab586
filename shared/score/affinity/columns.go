package affinity

import (
	"sort"

	"github.com/affinityengine/affinity/shared/event"
)

// This file scores column-wise input, as blocks of a history hold it: the
// sorted times of many events (a run) and, for each value, the events that
// carry it. The caller starts a run with BeginRun, gets the weights of its
// events from Weigh, adds up the weights of each value's events, and passes the
// sums to AddTotals.

// Points returns the score of events of a type and name, before the weight of a
// facet. It is 0 if such events do not score.
func (c *Compiled) Points(typ, name []byte) float64 {
	return c.points[Pair{Type: string(typ), Name: string(name)}]
}

// KindScore is Points of texts.
func (c *Compiled) KindScore(typ event.Type, name string) float64 {
	return c.points[Pair{Type: string(typ), Name: name}]
}

// Facet returns the index of a facet in Facets, and whether the facet scores.
func (c *Compiled) Facet(name []byte) (int, bool) {
	i, ok := c.indexes[string(name)]
	return int(i), ok
}

// Scores returns the number of scores of an affinity: one for each half-life,
// or 1 for the plain sum.
func (c *Compiled) Scores() int { return len(c.perMS) }

// BeginRun starts a run of events with these times (ms), which must be sorted.
// The events [lo, hi) are inside the window; the others do not count.
func (sc *Scorer) BeginRun(times []int64) (lo, hi int) {
	if len(times) == 0 {
		return 0, 0
	}
	w := sc.window
	hi = len(times)
	if !w.Contains(times[0]) || !w.Contains(times[hi-1]) {
		notTooOld := func(i int) bool { return times[i] >= w.oldest() && !w.deleted(times[i]) }
		lo = sort.Search(len(times), notTooOld)
		hi = lo + sort.Search(len(times)-lo, func(i int) bool { return times[lo+i] > w.Now })
	}
	if lo < hi {
		sc.noteEvent(times[hi-1])
	}
	if hi < len(times) {
		sc.noteOutside(times[hi])
		sc.noteOutside(times[len(times)-1])
	}
	return lo, hi
}

// Weigh sets weights to the points of events inside the window, decayed under
// the half-life with index k (see Scores). All three slices have the same
// length.
func (sc *Scorer) Weigh(k int, weights, points []float64, times []int64) {
	perMS, now := sc.c.perMS[k], sc.window.Now
	if perMS == 0 {
		copy(weights, points)
		return
	}
	for i, t := range times {
		weights[i] = points[i] * exp2Neg(age(now, t)*perMS)
	}
}

// AddTotals adds totals to the sums of one value of a facet: for each
// half-life, the sum of weight x count over the value's events inside the
// window. The value is b[start:end], as the client sent it; the scorer does not
// keep b. At least one of these events must score, if only a zero by decay. The
// caller reports the oldest of them to Scored.
func (sc *Scorer) AddTotals(facet int, b []byte, start, end int, totals []float64) {
	f := int32(facet)
	sc.addTotals(f, sc.lookup(f, b, start, end), totals)
}

// Place remembers where a scorer holds a value of a facet. Its zero value
// remembers nothing. It serves any number of scorers, one after the other.
type Place uint64 // epoch of a scorer, then entry

const (
	placeBits = 24
	maxPlace  = 1<<placeBits - 1
)

// AddTotalsAt is AddTotals for a value that has a place of its own, which spares
// the scorer the search for a value that it has found before.
func (sc *Scorer) AddTotalsAt(p *Place, facet int, b []byte, start, end int, totals []float64) {
	f := int32(facet)
	if at := *p; uint64(at)>>placeBits == sc.epoch {
		sc.addTotals(f, int32(at&maxPlace), totals)
		return
	}
	at := sc.lookup(f, b, start, end)
	if at >= 0 && at <= maxPlace {
		*p = Place(sc.epoch<<placeBits | uint64(at))
	}
	sc.addTotals(f, at, totals)
}

func (sc *Scorer) addTotals(f, at int32, totals []float64) {
	if at == refused {
		return
	}
	slot := sc.resolve(f, at)
	if slot == refused {
		return
	}
	sums := sc.sumsAt(f, slot)
	if sc.enters(f, slot) {
		sc.enlist(f, slot, sums)
	}
	weight := sc.c.weights[f]
	for i, total := range totals[:len(sums)] {
		sums[i] += weight * total
	}
}
