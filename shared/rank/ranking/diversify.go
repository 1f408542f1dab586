package ranking

import (
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
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
	inRow      int         // deferred since the last was chosen
	exceeding  bool        // all that are left exceed
	loss       float64     // of those; below 0: the first of them is not chosen yet
	behind     float64     // what each item loses that is not chosen
	exceeded   []string    // the value by which each of the last chosen items exceeds
	perValue   tally       // chosen items by their values of the facet
	carriers   carriers
}

// contender is what the choice knows of a candidate.
type contender struct {
	score   float64 // without diversity
	overlap float64 // the highest with the first seen chosen items
	seen    int32
	nearest int32 // candidate of this overlap
	// The positions of the filters that are compared; end is 0 until values finds them.
	start, end int32
}

// diversify returns the first n candidates of w.order as Diversify defines. It
// changes w.order.
func (w *work) diversify(n int) []ranked {
	g := &w.greedy
	g.start(w.q, w.order)
	w.heapify()
	for places := min(n, diversified(w.q)); len(g.chosen) < places; {
		if len(w.order) == 0 {
			w.order, g.deferred, g.exceeding, g.loss = g.deferred, w.order, true, -1
			w.heapify()
		}
		top := w.order[0]
		value, exceeds := g.exceeds(w.q, top.candidate)
		switch {
		case exceeds && !g.exceeding:
			w.deferTop()
			continue
		case g.update(w.q, w.order):
			w.settle(0)
		default:
			g.choose(w.q, top, value)
			w.pop()
			g.inRow = 0
		}
	}
	return append(g.chosen, w.follow(n-len(g.chosen))...)
}

// deferTop puts the top of the heap, which exceeds, behind those that do not. If many
// of the best exceed, it looks for all that do: that takes less time than to remove
// one after the other from the heap.
func (w *work) deferTop() {
	g := &w.greedy
	if g.inRow++; g.inRow <= 16+len(w.order)/16 {
		g.deferred = append(g.deferred, w.order[0])
		w.pop()
		return
	}
	g.inRow = 0
	kept := w.order[:0]
	for _, o := range w.order {
		if _, exceeds := g.exceeds(w.q, o.candidate); exceeds {
			g.deferred = append(g.deferred, o)
		} else {
			kept = append(kept, o)
		}
	}
	w.order = kept
	w.heapify()
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
	g.behind = max(rest[0].score-last, 0)
	for i := range rest {
		rest[i].score = behindLast(rest[i].score, g.behind, last)
	}
	return rest
}

// heapify makes w.order a heap with the best on top.
func (w *work) heapify() {
	for i := len(w.order)/2 - 1; i >= 0; i-- {
		w.settle(i)
	}
}

// settle moves an item of the heap down to where it belongs.
func (w *work) settle(i int) {
	if i >= len(w.order) {
		return
	}
	heap, item := w.order, w.order[i]
	for child := 2*i + 1; child < len(heap); child = 2*i + 1 {
		if child+1 < len(heap) && w.before(heap[child+1], heap[child]) {
			child++
		}
		if w.before(item, heap[child]) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	heap[i] = item
}

// before reports whether a stands before b. Few scores are equal.
func (w *work) before(a, b ranked) bool {
	return a.score > b.score || a.score == b.score && w.compare(a, b) < 0
}

// pop removes the top of the heap.
func (w *work) pop() {
	last := len(w.order) - 1
	w.order[0] = w.order[last]
	w.order = w.order[:last]
	w.settle(0)
}

func (g *greedy) start(q *Query, order []ranked) {
	g.penalty, g.inRow, g.exceeding, g.loss = penalty(q), 0, false, 0
	g.facet = hashText(q.Diversity.Facet)
	g.chosen, g.deferred, g.exceeded = g.chosen[:0], g.deferred[:0], g.exceeded[:0]
	g.carriers.reset()
	g.contenders = slices.Grow(g.contenders[:0], len(q.Candidates))[:len(q.Candidates)]
	for _, o := range order {
		g.contenders[o.candidate] = contender{score: o.score}
	}
	g.perValue.reset()
}

// reset drops the texts of a request.
func (g *greedy) reset() {
	clear(g.exceeded)
}

// last returns the score of the last chosen item.
func (g *greedy) last() float64 { return g.chosen[len(g.chosen)-1].score }

// behindLast returns a score with a loss. Rounding must not lift it above the last.
func behindLast(score, loss, last float64) float64 { return min(score-loss, last) }

// values returns the positions of a candidate's filters that are compared.
func (g *greedy) values(q *Query, candidate int32) (o *Object, start, end int32) {
	c, o := &g.contenders[candidate], q.Candidates[candidate].Object
	switch facet := q.Diversity.Facet; {
	case o == nil || c.end != 0:
	case facet == "":
		c.end = int32(len(o.values))
	default:
		for i, start := 0, int32(0); i < len(o.facets); i++ {
			f := &o.facets[i]
			if f.hash == g.facet && f.name.of(o.text) == facet {
				c.start, c.end = start, f.until
				break
			}
			start = f.until
		}
	}
	return o, c.start, c.end
}

// exceeds returns the first value by which a candidate exceeds.
func (g *greedy) exceeds(q *Query, candidate int32) (value string, ok bool) {
	if q.Diversity.MaxPerValue == 0 {
		return "", false
	}
	o, start, end := g.values(q, candidate)
	for i := start; i < end; i++ {
		if v := &o.values[i]; int(g.perValue.of(v.hash)) >= q.Diversity.MaxPerValue {
			return v.name.of(o.text), true
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
	o, start, end := g.values(q, top.candidate)
	for i := start; q.Diversity.MaxPerValue > 0 && i < end; i++ {
		g.perValue.add(o.values[i].hash)
	}
	if g.penalty > 0 {
		g.carriers.add(o, start, end)
	}
	g.chosen = append(g.chosen, top)
}

// update compares the top of a heap with the items that were chosen since the last
// time. It reports whether its score fell.
func (g *greedy) update(q *Query, heap []ranked) bool {
	top := &heap[0]
	c := &g.contenders[top.candidate]
	if g.penalty == 0 || int(c.seen) == len(g.chosen) {
		return false
	}
	seen := c.seen
	c.seen = int32(len(g.chosen))
	o, start, end := g.values(q, top.candidate)
	if c.overlap == 1 || start == end {
		return false
	}
	highest, place := g.carriers.overlap(o, start, end, seen)
	if highest <= c.overlap {
		return false
	}
	c.overlap, c.nearest = highest, g.chosen[place].candidate
	before := top.score
	top.score = affinity.Rounded(c.score - g.penalty*highest)
	return top.score < before
}

// explain returns the feature of the candidate at a place; its Value may be 0. The
// Value is what diversity takes, also where the score is too large to show it.
func (g *greedy) explain(q *Query, place int, candidate int32) Feature {
	f := Feature{Name: Diversified}
	if place >= len(g.chosen) {
		f.Value = -g.behind
		return f
	}
	c := &g.contenders[candidate]
	if near := g.penalty * c.overlap; near > 0 {
		f.Value -= near
		f.Parts = append(f.Parts, Part{Name: q.Candidates[c.nearest].ObjectID, Value: -near})
	}
	if n := place - (len(g.chosen) - len(g.exceeded)); n >= 0 && g.loss > 0 {
		f.Value -= g.loss
		f.Parts = append(f.Parts, Part{Name: q.Diversity.Facet + ":" + g.exceeded[n], Value: -g.loss})
	}
	slices.SortStableFunc(f.Parts, func(a, b Part) int { return compareParts(b, a) })
	return f
}
