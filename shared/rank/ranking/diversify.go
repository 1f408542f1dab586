package ranking

import (
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// greedy computes what Diversify defines by lazy evaluation. While items are
// chosen, the score of a candidate can only fall, so that of some places ago is an
// upper bound. Candidates lie on shelves. Each shelf is a heap with the highest bound
// on top, and so are the shelves: only the top of all is compared with the items that
// were chosen since. If the query names a facet, those with the same values of it
// share a shelf, because they have the same overlaps and exceed together. Otherwise
// there is one shelf.
type greedy struct {
	penalty    float64     // for an overlap of 1
	facet      uint64      // its hash
	contenders []contender // by candidate
	shelves    []shelf     // none of them is empty
	table      shelfTable
	chosen     []ranked // with their final scores
	deferred   []ranked // they exceed maxPerValue
	exceeding  bool     // all that are left exceed
	loss       float64  // of those; below 0: the first of them is not chosen yet
	behind     float64  // what each item loses that is not chosen
	exceeded   []string // the value by which each of the last chosen items exceeds
	perValue   tally    // chosen items by their values of the facet
	carriers   carriers
}

// contender is what the choice knows of a candidate.
type contender struct {
	score float64 // without diversity
	nearness
	// The positions of the filters that are compared; end is 0 until values finds them.
	start, end int32
}

// nearness is what the choice knows of the overlaps of a candidate, or of all on a shared
// shelf.
type nearness struct {
	overlap float64 // the highest with the first seen chosen items
	seen    int32
	nearest int32 // candidate of this overlap
}

// diversify returns the first n candidates of w.order as Diversify defines. It
// changes w.order.
func (w *work) diversify(n int) []ranked {
	g := &w.greedy
	g.start(w.q, w.order)
	w.shelve()
	for places := min(n, diversified(w.q)); len(g.chosen) < places; {
		if len(g.shelves) == 0 {
			w.order, g.deferred, g.exceeding, g.loss = g.deferred, w.order[:0], true, -1
			w.shelve()
		}
		of := &g.shelves[0]
		value, exceeds := g.exceeds(w.q, of.items[0].candidate)
		switch {
		case exceeds && !g.exceeding:
			g.deferred = append(g.deferred, of.items...)
			of.items = nil
		case w.update(of):
		default:
			g.choose(w.q, of, value)
			w.pop(of)
		}
		w.settleShelf()
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
	for i := range g.shelves {
		g.deferred = append(g.deferred, g.shelves[i].items...)
	}
	w.order, g.deferred = g.deferred, w.order
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

func (g *greedy) start(q *Query, order []ranked) {
	g.penalty, g.exceeding, g.loss = penalty(q), false, 0
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

// values returns the positions of a candidate's filters that are compared. It finds the
// facet by its hash alone: to read its text takes as long as all the rest.
func (g *greedy) values(q *Query, candidate int32) (o *Object, start, end int32) {
	c, o := &g.contenders[candidate], q.Candidates[candidate].Object
	switch {
	case o == nil || c.end != 0:
	case q.Diversity.Facet == "":
		c.end = int32(len(o.values))
	default:
		for i, start := 0, int32(0); i < len(o.facets); i++ {
			if f := &o.facets[i]; f.hash == g.facet {
				c.start, c.end = start, f.until
				break
			}
			start = o.facets[i].until
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

// choose gives the next place to the top of a shelf, which exceeds by value.
func (g *greedy) choose(q *Query, of *shelf, value string) {
	top := of.items[0]
	g.contenders[top.candidate].nearness = *g.nearness(of)
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

// nearness returns what the choice knows of the overlaps of the top of a shelf.
func (g *greedy) nearness(of *shelf) *nearness {
	if of.shared {
		return &of.nearness
	}
	return &g.contenders[of.items[0].candidate].nearness
}

// update compares the top of a shelf with the items that were chosen since the last
// time. It reports whether its score fell.
func (w *work) update(of *shelf) bool {
	g := &w.greedy
	c := g.nearness(of)
	if g.penalty == 0 || int(c.seen) == len(g.chosen) {
		return false
	}
	seen := c.seen
	c.seen = int32(len(g.chosen))
	o, start, end := g.values(w.q, of.items[0].candidate)
	if c.overlap == 1 || start == end {
		return false
	}
	highest, place := g.carriers.overlap(o, start, end, seen)
	if highest <= c.overlap {
		return false
	}
	c.overlap, c.nearest = highest, g.chosen[place].candidate
	before := of.items[0].score
	falling := of.items
	if !of.shared {
		falling = falling[:1]
	}
	for i := range falling {
		falling[i].score = affinity.Rounded(g.contenders[falling[i].candidate].score - g.penalty*highest)
	}
	if of.shared {
		w.heapify(of.items) // rounding may make scores equal
	}
	fell := of.items[0].score < before
	w.settle(of.items, 0)
	return fell
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
