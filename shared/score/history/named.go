package history

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// ObjectReader reads what blocks say of the objects of events. It decodes facets
// only if Counts is set. Its zero value is ready. Its scratch memory grows to a few times the
// largest block. An ObjectReader is not safe for concurrent use.
type ObjectReader struct {
	// Strategy limits the events to kinds that it scores above 0. nil: all kinds.
	Strategy *affinity.Compiled
	// Counts gives events that name no objects their counts of the facets that
	// Strategy scores, without aliases. It needs a Strategy.
	Counts bool
	// Dictionaries are those of the app whose blocks it reads. nil: it reads no
	// block that names one.
	Dictionaries Dictionaries

	names   []byte      // kinds of the last block's events, as stored
	of      *Dictionary // its dictionary; nil: it had none
	pairs   []affinity.Pair
	wanted  []bool // by kind
	times   []int64
	kinds   []uint32
	objects objectList
	chosen  []int // events that need their counts
}

// Read calls fn for the events of a block that are inside the window, in order, with
// their objects and without counts unless Counts is set. The caller may keep the
// events. An error is as in Reader.Score; it comes before the first call of fn.
func (r *ObjectReader) Read(block []byte, w affinity.Window, fn func(affinity.Event)) error {
	f, err := r.open(block, r.Dictionaries)
	if err != nil {
		return err
	}
	counts, ok := r.unnamed(&f, block, w)
	if !ok {
		return damaged(block)
	}
	for i, time := range r.times {
		if !r.gives(i, w) {
			continue
		}
		e := r.event(i, time)
		if len(counts) > 0 && len(e.ObjectIDs) == 0 {
			e.Counts, counts = counts[0], counts[1:]
		}
		fn(e)
	}
	return nil
}

// gives reports whether an event is of a wanted kind and inside the window.
func (r *ObjectReader) gives(ordinal int, w affinity.Window) bool {
	return r.wanted[r.kinds[ordinal]] && w.Contains(r.times[ordinal])
}

// unnamed returns the counts of the events that Read gives and that name no
// objects, in order; nothing unless Counts is set.
func (r *ObjectReader) unnamed(f *frame, block []byte, w affinity.Window) ([][]affinity.Count, bool) {
	r.chosen = r.chosen[:0]
	for i := range r.times {
		if r.Counts && r.gives(i, w) && r.objects.none(i) {
			r.chosen = append(r.chosen, i)
		}
	}
	if len(r.chosen) == 0 {
		return nil, true
	}
	return r.countsOf(r.Strategy, f, block, r.chosen)
}

func (r *ObjectReader) event(i int, time int64) affinity.Event {
	pair := r.pairs[r.kinds[i]]
	e := affinity.Event{Time: time, Type: event.Type(pair.Type), Name: pair.Name}
	e.Index, e.ObjectIDs = r.objects.of(i)
	return e
}

// open checks a block and decodes the kinds, the times and the objects of its events.
func (r *ObjectReader) open(block []byte, dictionaries Dictionaries) (frame, error) {
	f, err := open(block)
	if err != nil {
		return frame{}, err
	}
	d, err := f.dictionary(dictionaries)
	if err != nil {
		return frame{}, fmt.Errorf("read block of %d bytes: %w", len(block), err)
	}
	r.kinds, r.times = resize(r.kinds, f.events), resize(r.times, f.events)
	if !r.readNames(&f, d) || !f.readKinds(r.kinds) || !f.readTimes(r.times) || !r.objects.read(f.objects, f.events) {
		return frame{}, damaged(block)
	}
	return f, nil
}

func (r *ObjectReader) readNames(f *frame, d *Dictionary) bool {
	if r.pairs != nil && r.of == d && bytes.Equal(f.kinds, r.names) {
		return true
	}
	r.of, r.names = d, append(r.names[:0], f.kinds...)
	pairs, ok := f.pairs([]affinity.Pair{}, d)
	if r.pairs = pairs; !ok {
		r.pairs = nil
		return false
	}
	r.wanted = r.wanted[:0]
	for _, p := range pairs {
		r.wanted = append(r.wanted, r.Strategy == nil || r.Strategy.KindScore(event.Type(p.Type), p.Name) > 0)
	}
	return true
}

// Recent calls fn for the newest n events of a block, oldest first, that are inside
// the window and of a kind whose score is above 0, with their objects and with their
// counts of the facets that the strategy scores. Aliases are not applied. The caller
// may keep the events. Errors are as in ObjectReader.Read.
func (r *Reader) Recent(block []byte, w affinity.Window, n int, fn func(affinity.Event)) error {
	o := &r.recent
	f, err := o.open(block, r.dictionaries)
	if err != nil {
		return err
	}
	chosen := r.newest(w, n)
	if len(chosen) == 0 {
		return nil
	}
	counts, ok := o.countsOf(r.c, &f, block, chosen)
	if !ok {
		return damaged(block)
	}
	for i, ordinal := range chosen {
		e := o.event(ordinal, o.times[ordinal])
		e.Counts = counts[i]
		fn(e)
	}
	return nil
}

// newest returns the ordinals of the newest n events of the block that count.
func (r *Reader) newest(w affinity.Window, n int) []int {
	var chosen []int
	for i := len(r.recent.times) - 1; i >= 0 && len(chosen) < n; i-- {
		if r.recent.wanted[r.recent.kinds[i]] && w.Contains(r.recent.times[i]) {
			chosen = append(chosen, i)
		}
	}
	slices.Reverse(chosen)
	return chosen
}

// countsOf returns the counts of the facets that a strategy scores, of some events,
// given by their ordinals, in order.
func (r *ObjectReader) countsOf(st *affinity.Compiled, f *frame, block []byte,
	ordinals []int) ([][]affinity.Count, bool) {
	counts, first := make([][]affinity.Count, len(ordinals)), ordinals[0]
	u := unpacked{times: r.times, of: r.of, skips: func(facet []byte) bool {
		_, scored := st.Facet(facet)
		return !scored
	}}
	u.text = string(block)
	ok := u.eachPosting(f, func(value uint32, ordinal, count int) bool {
		if ordinal < first {
			return true
		}
		if i, found := slices.BinarySearch(ordinals, ordinal); found {
			counted := u.values[value]
			counted.N = count
			counts[i] = append(counts[i], counted)
		}
		return true
	})
	return counts, ok
}
