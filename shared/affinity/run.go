package affinity

import "sort"

// What follows is for whoever holds many events at once, and values with lists of events in place of events with lists
// of values: a run is the times of events, in order. Such a reader begins the run, has its events weighed, adds up the
// weights of each value's events by himself, and hands over the totals.

// Points returns what events of a type and name score before the weight of a facet; 0: nothing.
func (c *Compiled) Points(typ, name []byte) float64 {
	return c.points[Pair{Type: string(typ), Name: string(name)}]
}

// Facet returns the place of a facet in Facets, and whether it is there.
func (c *Compiled) Facet(name []byte) (int, bool) {
	i, ok := c.indexes[string(name)]
	return int(i), ok
}

// Scores returns how many scores an affinity has: one for each half-life, or the plain sum.
func (c *Compiled) Scores() int { return len(c.perMS) }

// BeginRun begins events of these times (ms), which are in order. Those of [lo, hi) are inside the window; nothing of
// the others counts.
func (sc *Scorer) BeginRun(times []int64) (lo, hi int) {
	if len(times) == 0 {
		return 0, 0
	}
	w := sc.window
	hi = len(times)
	if !w.Contains(times[0]) || !w.Contains(times[hi-1]) {
		over := func(i int) bool { return times[i] >= w.oldest() && !w.deleted(times[i]) } // not too old
		lo = sort.Search(len(times), over)
		hi = lo + sort.Search(len(times)-lo, func(i int) bool { return times[lo+i] > w.Now })
	}
	if lo < hi {
		sc.knows(times[hi-1])
	}
	if hi < len(times) {
		sc.upcoming = min(sc.upcoming, w.enters(times[hi]))
	}
	return lo, hi
}

// Weigh sets weights to points, decayed under half-life k, of events inside the window. All three are of one length.
// For k see Scores.
func (sc *Scorer) Weigh(k int, weights, points []float64, times []int64) {
	perMS, now := sc.c.perMS[k], sc.window.Now
	if perMS == 0 {
		copy(weights, points)
		return
	}
	for i, t := range times {
		weights[i] = points[i] * halved(age(now, t)*perMS)
	}
}

// AddTotals adds to a value, as sent, of a facet: for each half-life the sum, over the value's events inside the window,
// of weight x count. The value is b[start:end]; it is not kept. Its events are for Scored to know.
func (sc *Scorer) AddTotals(facet int, b []byte, start, end int, totals []float64) {
	f := int32(facet)
	sums := sc.sums(f, sc.resolve(f, sc.lookup(f, b, start, end)))
	weight := sc.c.weights[facet]
	for i, total := range totals[:len(sums)] {
		sums[i] += weight * total
	}
}
