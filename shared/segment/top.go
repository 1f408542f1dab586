package segment

import (
	"cmp"
	"container/heap"
	"slices"
)

// top keeps the first limit hits by Order descending, then ordinal, of those behind a
// cursor.
type top struct {
	limit        int
	after        *Cursor // nil: all
	afterOrdinal int
	hits         worstFirst
}

// worstFirst is a heap.
type worstFirst []Hit

func (h worstFirst) Len() int           { return len(h) }
func (h worstFirst) Less(i, j int) bool { return byOrder(h[i], h[j]) > 0 }
func (h worstFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *worstFirst) Push(x any)        { *h = append(*h, x.(Hit)) }
func (h *worstFirst) Pop() any          { panic("not used") }

func byOrder(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(a.Ordinal, b.Ordinal))
}

func (t *top) full() bool { return len(t.hits) == t.limit }

// worst returns the hit that the next better one replaces. There is one once t is full.
func (t *top) worst() Hit { return t.hits[0] }

// passed reports whether earlier pages have all users of an Order.
func (t *top) passed(o Order) bool { return t.after != nil && o > t.after.Order }

func (t *top) add(h Hit) {
	switch {
	case t.passed(h.Order), t.after != nil && h.Order == t.after.Order && int(h.Ordinal) < t.afterOrdinal:
	case !t.full():
		t.hits = append(t.hits, h)
		if t.full() {
			heap.Init(&t.hits)
		}
	case byOrder(h, t.hits[0]) < 0:
		t.hits[0] = h
		heap.Fix(&t.hits, 0)
	}
}

func (t *top) sorted() []Hit {
	slices.SortFunc(t.hits, byOrder)
	return t.hits
}
