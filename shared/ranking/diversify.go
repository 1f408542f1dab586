package ranking

import (
	"math"
	"math/bits"
	"slices"
)

// greedy computes what Diversify defines by lazy evaluation. While items are
// chosen, the score of a candidate can only fall, so that of some places ago is an
// upper bound. A heap has the highest bound on top, and only the top is compared
// with the items that were chosen since.
type greedy struct {
	penalty    float64     // for an overlap of 1
	facet      uint64      // its hash
	contenders []contender // by candidate
	chosen     []ranked    // with their final scores
	deferred   []ranked    // they exceed maxPerValue
	exceeding  bool        // all that are left exceed
	loss       float64     // of those; below 0: the first of them is not chosen yet
	exceeded   []string    // the value by which each of the last chosen items exceeds
	perValue   map[string]int
	hashes     []uint64 // of the filters of contenders
}

// contender is what the choice knows of a candidate.
type contender struct {
	score   float64 // without diversity
	overlap float64 // the highest with the first seen chosen items
	seen    int32
	nearest int32 // candidate of this overlap
	filterSet
}

// filterSet are the filters of a contender that are compared, as sorted hashes. Of
// a million filters two have the same hash with a probability of 3e-8.
type filterSet struct {
	ready      bool
	start, end int32  // in greedy.hashes
	signature  uint64 // has one bit of each hash
}

func (s *filterSet) len() int { return int(s.end - s.start) }

// diversify returns the first n candidates of w.order as Diversify defines. It
// changes w.order.
func (w *work) diversify(n int) []ranked {
	g := &w.greedy
	g.start(w.q, w.order)
	w.heapify(w.order, bestOnTop)
	for places := min(n, diversified(w.q)); len(g.chosen) < places; {
		if len(w.order) == 0 {
			w.order, g.deferred, g.exceeding, g.loss = g.deferred, w.order, true, -1
			w.heapify(w.order, bestOnTop)
		}
		top := w.order[0]
		value, exceeds := g.exceeds(w.q, top.candidate)
		switch {
		case exceeds && !g.exceeding:
			g.deferred = append(g.deferred, top)
			w.pop()
		case g.update(w.q, w.order):
			w.sink(w.order, 0, bestOnTop)
		default:
			g.choose(w.q, top, value)
			w.pop()
		}
	}
	return append(g.chosen, w.follow(n-len(g.chosen))...)
}

// follow returns n of the candidates that are left, in the order of their scores
// without diversity.
func (w *work) follow(n int) []ranked {
	if n == 0 {
		return nil
	}
	g := &w.greedy
	w.order = append(w.order, g.deferred...)
	for i := range w.order {
		w.order[i].score = g.contenders[w.order[i].candidate].score
	}
	rest, last := w.first(n), g.last()
	loss := max(rest[0].score-last, 0)
	for i := range rest {
		rest[i].score = behindLast(rest[i].score, loss, last)
	}
	return rest
}

// pop removes the top of the heap.
func (w *work) pop() {
	last := len(w.order) - 1
	w.order[0] = w.order[last]
	w.order = w.order[:last]
	w.sink(w.order, 0, bestOnTop)
}

func (g *greedy) start(q *Query, order []ranked) {
	g.penalty, g.exceeding, g.loss = penalty(q), false, 0
	g.facet = hashText(q.Diversity.Facet)
	g.chosen, g.deferred, g.hashes, g.exceeded = g.chosen[:0], g.deferred[:0], g.hashes[:0], g.exceeded[:0]
	g.contenders = slices.Grow(g.contenders[:0], len(q.Candidates))[:len(q.Candidates)]
	for _, o := range order {
		g.contenders[o.candidate] = contender{score: o.score}
	}
	if g.perValue == nil {
		g.perValue = map[string]int{}
	}
}

// reset drops the texts of a request.
func (g *greedy) reset() {
	clear(g.perValue)
	clear(g.exceeded)
}

// last returns the score of the last chosen item.
func (g *greedy) last() float64 { return g.chosen[len(g.chosen)-1].score }

// behindLast returns a score with a loss. Rounding must not lift it above the last.
func behindLast(score, loss, last float64) float64 { return min(score-loss, last) }

// values returns the positions of an object's filters that are compared.
func (g *greedy) values(q *Query, o *Object) (start, end int32) {
	facet := q.Diversity.Facet
	switch {
	case o == nil:
		return 0, 0
	case facet == "":
		return 0, int32(len(o.values))
	}
	for i := range o.facets {
		f := &o.facets[i]
		if f.hash == g.facet && f.name.of(o.text) == facet {
			return start, f.until
		}
		start = f.until
	}
	return 0, 0
}

// exceeds returns the first value by which a candidate exceeds.
func (g *greedy) exceeds(q *Query, candidate int32) (value string, ok bool) {
	if q.Diversity.MaxPerValue == 0 {
		return "", false
	}
	o := q.Candidates[candidate].Object
	for i, end := g.values(q, o); i < end; i++ {
		if value = o.values[i].name.of(o.text); g.perValue[value] >= q.Diversity.MaxPerValue {
			return value, true
		}
	}
	return "", false
}

// choose gives the next place to the top of the heap, which exceeds by value.
func (g *greedy) choose(q *Query, top ranked, value string) {
	if g.exceeding {
		if g.loss < 0 {
			g.loss = max(top.score-g.last(), 0)
		}
		top.score = behindLast(top.score, g.loss, g.last())
		g.exceeded = append(g.exceeded, value)
	}
	o := q.Candidates[top.candidate].Object
	if q.Diversity.MaxPerValue > 0 {
		for i, end := g.values(q, o); i < end; i++ {
			g.perValue[o.values[i].name.of(o.text)]++
		}
	}
	g.prepare(q, top.candidate)
	g.chosen = append(g.chosen, top)
}

// prepare makes the filter set of a candidate.
func (g *greedy) prepare(q *Query, candidate int32) {
	c, o := &g.contenders[candidate], q.Candidates[candidate].Object
	if c.ready {
		return
	}
	c.ready, c.start = true, int32(len(g.hashes))
	for i, end := g.values(q, o); i < end; i++ {
		hash := o.values[i].hash
		g.hashes = append(g.hashes, hash)
		c.signature |= 1 << (hash & 63)
	}
	c.end = int32(len(g.hashes))
	slices.Sort(g.hashes[c.start:c.end])
}

// update compares the top of a heap with the items that were chosen since the last
// time, until its score falls below another one. It reports whether the score fell.
func (g *greedy) update(q *Query, heap []ranked) bool {
	c := &g.contenders[heap[0].candidate]
	if g.penalty == 0 || int(c.seen) == len(g.chosen) {
		return false
	}
	g.prepare(q, heap[0].candidate)
	before, next := heap[0].score, runnerUp(heap)
	for int(c.seen) < len(g.chosen) && heap[0].score >= next {
		other := g.chosen[c.seen].candidate
		c.seen++
		if o := g.overlap(c, &g.contenders[other]); o > c.overlap {
			c.overlap, c.nearest = o, other
			heap[0].score = c.score - g.penalty*o
		}
	}
	return heap[0].score < before
}

// runnerUp returns the highest score below the top of a heap.
func runnerUp(heap []ranked) float64 {
	switch len(heap) {
	case 1:
		return math.Inf(-1)
	case 2:
		return heap[1].score
	}
	return max(heap[1].score, heap[2].score)
}

// overlap returns the overlap of two contenders, or less than the first has
// already. Filters whose bit the other signature lacks are not common.
func (g *greedy) overlap(a, b *contender) float64 {
	n, m := a.len(), b.len()
	most := min(n-bits.OnesCount64(a.signature&^b.signature), m-bits.OnesCount64(b.signature&^a.signature))
	if most == 0 || jaccard(most, n, m) <= a.overlap {
		return 0
	}
	common, i, j := 0, a.start, b.start
	for i < a.end && j < b.end {
		switch x, y := g.hashes[i], g.hashes[j]; {
		case x == y:
			common++
			i++
			j++
		case x < y:
			i++
		default:
			j++
		}
	}
	return jaccard(common, n, m)
}

// explain returns the feature of the item at a place; its Value may be 0.
func (g *greedy) explain(q *Query, place int, item Item) Feature {
	c := &g.contenders[item.Candidate]
	f := Feature{Name: Diversified, Value: item.Score - c.score}
	if place >= len(g.chosen) {
		return f
	}
	if near := g.penalty * c.overlap; near > 0 {
		f.Parts = append(f.Parts, Part{Name: q.Candidates[c.nearest].ObjectID, Value: -near})
	}
	if n := place - (len(g.chosen) - len(g.exceeded)); n >= 0 && g.loss > 0 {
		f.Parts = append(f.Parts, Part{Name: q.Diversity.Facet + ":" + g.exceeded[n], Value: -g.loss})
	}
	slices.SortStableFunc(f.Parts, func(a, b Part) int { return compareParts(b, a) })
	return f
}
