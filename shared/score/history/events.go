package history

import (
	"fmt"
	"iter"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Events iterates over the events of a block, in order, with their objects. The
// counts of an event are in the order of the block, not in the order in which they were added. The
// dictionary of the block comes from dictionaries. If the block cannot be read,
// Events yields one error and stops: the error is as in Reader.Score. The events
// share one copy of the block's texts and the dictionary, not the block itself, so
// the caller may keep them.
func Events(block []byte, dictionaries Dictionaries) iter.Seq2[affinity.Event, error] {
	return func(yield func(affinity.Event, error) bool) {
		u, err := unpack(block, dictionaries)
		if err != nil {
			yield(affinity.Event{}, err)
			return
		}
		for i, time := range u.times {
			pair := u.names[u.kinds[i]]
			e := affinity.Event{Time: time, Type: event.Type(pair.Type), Name: pair.Name, Counts: u.counts(i)}
			e.Index, e.ObjectIDs = u.objects.of(i)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// unpacked is a block transposed: lists of counts by event instead of lists of
// events by value.
type unpacked struct {
	text   string
	of     *Dictionary // nil: the block has none
	times  []int64
	kinds  []uint32 // by event: index in names
	names  []affinity.Pair
	values []affinity.Count // with N unset
	starts []uint32         // offsets in cells by event, then the end
	cells  []cell
	slab   []affinity.Count

	objects objectList

	skips    func(facet []byte) bool // facets to leave out; nil: none
	postings postings                // of one group
}

// cell is a posting as its event holds it.
type cell struct {
	value uint32
	count int
}

func unpack(block []byte, dictionaries Dictionaries) (*unpacked, error) {
	f, err := open(block)
	if err != nil {
		return nil, err
	}
	d, err := f.dictionary(dictionaries)
	if err != nil {
		return nil, fmt.Errorf("read block of %d bytes: %w", len(block), err)
	}
	u := &unpacked{text: string(block), of: d, times: make([]int64, f.events), kinds: make([]uint32, f.events)}
	names, ok := f.pairs(nil, d)
	if u.names = names; !ok || !f.readTimes(u.times) || !f.readKinds(u.kinds) || !u.readSections(&f) {
		return nil, damaged(block)
	}
	return u, nil
}

// readSections reads all postings twice: first to count those of each event,
// then to store them.
func (u *unpacked) readSections(f *frame) bool {
	u.starts = make([]uint32, f.events+1)
	ends := u.starts[1:]
	total, most := 0, MaxBytes+len(u.text)
	if !u.eachPosting(f, func(_ uint32, ordinal, _ int) bool {
		ends[ordinal]++
		total++
		return total <= most
	}) {
		return false
	}
	end := uint32(0)
	for i, n := range ends {
		ends[i] = end // the start of the event's cells; it advances to their end
		end += n
	}
	u.cells = make([]cell, total)
	u.values = u.values[:0]
	return u.objects.read(f.objects, f.events) && u.eachPosting(f, func(value uint32, ordinal, count int) bool {
		u.cells[ends[ordinal]] = cell{value, count}
		ends[ordinal]++
		return true
	})
}

// eachPosting calls fn for every posting of the sections of facets, until fn
// returns false. It appends the values to u.values. It reports whether it came to
// the end of the block.
func (u *unpacked) eachPosting(f *frame, fn func(value uint32, ordinal, count int) bool) bool {
	s := f.eachSection()
	for s.next() {
		if !u.eachOf(&s.section, fn) {
			return false
		}
	}
	return s.done()
}

func (u *unpacked) eachOf(s *section, fn func(value uint32, ordinal, count int) bool) bool {
	if s.id >= 0 && (u.of == nil || s.id >= len(u.of.facets)) {
		return false
	}
	name, facet := s.name, ""
	if s.id >= 0 {
		name, facet = u.of.text(u.of.facets[s.id].name), u.of.texts().facets[s.id]
	}
	if u.skips != nil && u.skips(name) {
		return true
	}
	if s.id < 0 {
		facet = u.text[s.end-len(name) : s.end]
	}
	return u.eachGroup(s, facet, fn)
}

// eachGroup is eachPosting for the groups of one facet.
func (u *unpacked) eachGroup(s *section, facet string, fn func(value uint32, ordinal, count int) bool) bool {
	var known []string
	if s.id >= 0 {
		known = u.of.texts().values[s.id]
	}
	c, first := &s.body, -1
	for c.Next < len(c.B) {
		head, n, next, ok := readHead(c.B, c.Next)
		if !ok {
			return false
		}
		if c.Next, ok = u.postings.read(c.B, next, head, len(u.times)); !ok {
			return false
		}
		distance, id := head>>groupShift, first
		for i := range n {
			if i > 0 && head>>groupShift > 0 {
				distance = c.Unsigned() + 1
			}
			value := ""
			if head>>groupShift == 0 {
				text := c.Text()
				value = u.text[c.Next-len(text) : c.Next]
			} else {
				if distance-1 >= uint64(len(known)) || uint64(id)+distance >= uint64(len(known)) {
					return false
				}
				id += int(distance)
				value = known[id]
			}
			if i == 0 {
				first = id
			}
			if c.Damaged || !u.post(affinity.Count{Facet: facet, Value: value}, fn) {
				return false
			}
		}
	}
	return true
}

// post calls fn for the postings of a group for one of its values.
func (u *unpacked) post(value affinity.Count, fn func(value uint32, ordinal, count int) bool) bool {
	u.values = append(u.values, value)
	for i, o := range u.postings.ordinals {
		if !fn(uint32(len(u.values)-1), int(o), int(u.postings.count(i))) {
			return false
		}
	}
	return true
}

// counts returns the counts of event i, cut from a slab that events share to
// save allocations.
func (u *unpacked) counts(i int) []affinity.Count {
	cells := u.cells[u.starts[i]:u.starts[i+1]]
	n := len(cells)
	if n == 0 {
		return nil
	}
	if n > len(u.slab) {
		u.slab = make([]affinity.Count, max(n, min(256, len(u.cells))))
	}
	counts := u.slab[:n:n]
	u.slab = u.slab[n:]
	for j, c := range cells {
		counts[j] = u.values[c.value]
		counts[j].N = c.count
	}
	return counts
}
