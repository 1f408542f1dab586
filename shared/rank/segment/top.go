package segment

import (
	"cmp"
	"slices"
)

// top keeps the first limit hits by Order descending, then ordinal, of those behind a
// cursor.
type top struct {
	limit        int
	after        *Cursor // nil: all
	afterOrdinal int
	hits         []Hit // a heap with the worst first, once it is full
}

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
			for i := len(t.hits)/2 - 1; i >= 0; i-- {
				t.sink(i)
			}
		}
	case byOrder(h, t.hits[0]) < 0:
		t.hits[0] = h
		t.sink(0)
	}
}

// sink moves a hit down the heap, below all that are worse.
func (t *top) sink(i int) {
	for {
		worst := 2*i + 1
		if worst >= len(t.hits) {
			return
		}
		if other := worst + 1; other < len(t.hits) && byOrder(t.hits[other], t.hits[worst]) > 0 {
			worst = other
		}
		if byOrder(t.hits[worst], t.hits[i]) <= 0 {
			return
		}
		t.hits[i], t.hits[worst] = t.hits[worst], t.hits[i]
		i = worst
	}
}

func (t *top) sorted() []Hit {
	slices.SortFunc(t.hits, byOrder)
	return t.hits
}
