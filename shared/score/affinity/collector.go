package affinity

import (
	"cmp"
	"slices"
)

// Collector keeps the newest events of a user that belong to their Session. It
// keeps them as a reader has them, so that the reader decodes only these: T is a
// row, a place in a block, or an event. Readers may add events in any order. A
// Collector is not safe for concurrent use.
type Collector[T any] struct {
	c      *Compiled
	window Window
	limit  int
	items  []collected[T] // at most 2 x limit
	floor  collected[T]   // once set, the newest limit items are not older
	full   bool           // floor is set
}

type collected[T any] struct {
	time    int64
	id      string
	ordinal int
	value   T
}

// newestFirst orders events from the newest to the oldest.
func newestFirst[T any](a, b collected[T]) int {
	return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.id, a.id), cmp.Compare(b.ordinal, a.ordinal))
}

// NewCollector returns a collector that keeps the newest limit events.
func NewCollector[T any](c *Compiled, w Window, limit int) *Collector[T] {
	return &Collector[T]{c: c, window: w, limit: limit}
}

// Wants reports whether an event of this time (ms), type and name may be one of
// the newest. If it is false, the reader need not call Add.
func (k *Collector[T]) Wants(time int64, typ, name string) bool {
	return k.WantsTime(time) && k.c.points[Pair{Type: typ, Name: name}] > 0
}

// WantsTime is Wants for an event whose type and name score.
func (k *Collector[T]) WantsTime(time int64) bool {
	return k.window.Contains(time) && !(k.full && time < k.floor.time)
}

// Add adds an event that the collector wants. Events are ordered by time (ms),
// then by event ID, then by ordinal. A block holds no IDs, so its reader passes
// the ordinals of its events, and as ID the one that is as far from the IDs of
// the log as the block: the ID at which the block's range begins for the events
// of that time, and "" for later ones.
func (k *Collector[T]) Add(time int64, id string, ordinal int, value T) {
	item := collected[T]{time, id, ordinal, value}
	if k.limit <= 0 || k.full && newestFirst(item, k.floor) > 0 {
		return
	}
	if k.items = append(k.items, item); len(k.items) >= 2*k.limit {
		k.cut()
	}
}

// Full reports whether the collector holds as many events as it keeps. Then Wants
// is false for every event older than all of these.
func (k *Collector[T]) Full() bool {
	k.cut()
	return k.full
}

// cut sorts the items and keeps the newest limit.
func (k *Collector[T]) cut() {
	slices.SortFunc(k.items, newestFirst)
	if k.full = len(k.items) >= k.limit; k.full && k.limit > 0 {
		clear(k.items[k.limit:])
		k.items = k.items[:k.limit]
		k.floor = k.items[k.limit-1]
	}
}

// Merge adds the events of another collector of the same strategy and window. It
// does not change o.
func (k *Collector[T]) Merge(o *Collector[T]) {
	for _, item := range o.items {
		k.Add(item.time, item.id, item.ordinal, item.value)
	}
}

// Newest returns the newest events, newest first. More may follow.
func (k *Collector[T]) Newest() []T {
	k.cut()
	values := make([]T, len(k.items))
	for i, item := range k.items {
		values[i] = item.value
	}
	return values
}
