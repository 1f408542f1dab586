package ranking

import "slices"

// shelf is a heap of candidates with the highest bound on top. It is never empty.
type shelf struct {
	items []ranked
	// shared says that all have the same values of the query's facet, and nearness.
	shared bool
	nearness
}

// shelfTable finds shelves by the values of their candidates.
type shelfTable struct {
	slots []slot  // a power of 2; key is the number of the shelf + 1
	of    []int32 // by place in the order: the number of the shelf
	sizes []int32 // by number of the shelf
}

// shelve puts the candidates of w.order on shelves.
func (w *work) shelve() {
	g := &w.greedy
	g.shelves = g.shelves[:0]
	switch {
	case len(w.order) == 0:
		return
	case w.q.Diversity.Facet == "":
		g.shelves = append(g.shelves, shelf{items: w.order})
	default:
		w.share()
	}
	for i := range g.shelves {
		w.heapify(g.shelves[i].items)
	}
	for i := len(g.shelves)/2 - 1; i >= 0; i-- {
		w.sinkShelf(i)
	}
}

// share puts candidates with the same values of the facet on one shelf, in memory of w.
// It compares values by their hashes.
func (w *work) share() {
	g, t := &w.greedy, &w.greedy.table
	if len(t.slots) > maxKept {
		*t = shelfTable{}
	}
	clear(t.slots)
	t.slots, t.sizes, t.of = grown(t.slots, 1), t.sizes[:0], slices.Grow(t.of[:0], len(w.order))[:len(w.order)]
	for i, o := range w.order {
		values := uint64(0)
		object, start, end := g.values(w.q, o.candidate)
		for v := start; v < end; v++ {
			values = values*31 + object.values[v].hash
		}
		s := at(t.slots, values)
		if s.key == 0 {
			g.shelves, t.sizes = append(g.shelves, shelf{shared: true}), append(t.sizes, 0)
			t.slots = grown(t.slots, len(g.shelves))
			s = at(t.slots, values)
			s.hash, s.key = values, int32(len(g.shelves))
		}
		t.of[i] = s.key - 1
		t.sizes[s.key-1]++
	}
	w.spread = slices.Grow(w.spread[:0], len(w.order))[:len(w.order)]
	start := int32(0)
	for i := range g.shelves {
		g.shelves[i].items = w.spread[start : start : start+t.sizes[i]]
		start += t.sizes[i]
	}
	for i, o := range w.order {
		items := &g.shelves[t.of[i]].items
		*items = append(*items, o)
	}
}

// settleShelf moves the first shelf, whose top has changed, to where it belongs.
func (w *work) settleShelf() {
	g := &w.greedy
	if len(g.shelves[0].items) == 0 {
		last := len(g.shelves) - 1
		g.shelves[0] = g.shelves[last]
		g.shelves[last] = shelf{}
		g.shelves = g.shelves[:last]
	}
	w.sinkShelf(0)
}

func (w *work) sinkShelf(i int) {
	all := w.greedy.shelves
	for child := 2*i + 1; child < len(all); child = 2*i + 1 {
		if child+1 < len(all) && w.before(all[child+1].items[0], all[child].items[0]) {
			child++
		}
		if w.before(all[i].items[0], all[child].items[0]) {
			break
		}
		all[i], all[child] = all[child], all[i]
		i = child
	}
}

// heapify makes candidates a heap with the best on top.
func (w *work) heapify(heap []ranked) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		w.settle(heap, i)
	}
}

// settle moves an item of a heap down to where it belongs.
func (w *work) settle(heap []ranked, i int) {
	if i >= len(heap) {
		return
	}
	item := heap[i]
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

// pop removes the top of a shelf.
func (w *work) pop(s *shelf) {
	last := len(s.items) - 1
	s.items[0] = s.items[last]
	s.items = s.items[:last]
	w.settle(s.items, 0)
}
