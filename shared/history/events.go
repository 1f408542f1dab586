package history

import (
	"fmt"
	"iter"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
)

// Events iterates over the events of a block, in order, with their objects if the
// block has them (HasObjects). The counts of an event
// are in the order of the block, not in the order in which they were added. If
// the block is damaged or has an unknown format (ErrNewer), Events yields one
// error and stops. The events share one copy of the block's texts, not the
// block itself, so the caller may keep them.
func Events(block []byte, dictionaries Dictionaries) iter.Seq2[affinity.Event, error] {
	return func(yield func(affinity.Event, error) bool) {
		u, err := unpack(block)
		if err != nil {
			yield(affinity.Event{}, fmt.Errorf("read block of %d bytes: %w", len(block), err))
			return
		}
		for i, time := range u.times {
			pair := u.names[u.kinds[i]]
			e := affinity.Event{Time: time, Type: event.Type(pair.Type), Name: pair.Name, Counts: u.counts(i)}
			if u.named {
				e.Index, e.ObjectIDs = u.objects.of(i)
			}
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
	times  []int64
	kinds  []uint32 // by event: index in names
	names  []affinity.Pair
	values []affinity.Count // with N unset
	starts []uint32         // offsets in cells by event, then the end
	cells  []cell
	slab   []affinity.Count

	objects objectList
	named   bool // the block has objects

	skips func(facet []byte) bool // facets to leave out; nil: none
}

// cell is a posting as its event holds it.
type cell struct {
	value uint32
	count int
}

func unpack(block []byte) (*unpacked, error) {
	if err := Check(block); err != nil {
		return nil, err
	}
	f, ok := open(block)
	if !ok {
		return nil, errDamaged
	}
	u := &unpacked{text: string(block), times: make([]int64, f.events)}
	at := len(block) - len(f.rest) // offset of the kinds
	if !f.readTimes(u.times) || !u.readNames(f.kinds) {
		return nil, errDamaged
	}
	c := cursor{b: block, next: at}
	u.kinds = make([]uint32, f.events)
	for i := range u.kinds {
		before := c.next
		kind := c.unsigned()
		long := len(u.names) <= shortKinds && c.next-before > 1
		if c.damaged || long || kind >= uint64(len(u.names)) {
			return nil, errDamaged
		}
		u.kinds[i] = uint32(kind)
	}
	if !u.readSections(f, c) {
		return nil, errDamaged
	}
	return u, nil
}

func (u *unpacked) readNames(kinds []byte) bool {
	c := cursor{b: kinds}
	for c.next < len(kinds) && !c.damaged {
		typ := string(c.text())
		u.names = append(u.names, affinity.Pair{Type: typ, Name: string(c.text())})
	}
	return !c.damaged
}

// readSections reads all postings twice: first to count those of each event,
// then to store them.
func (u *unpacked) readSections(f frame, c cursor) bool {
	u.starts = make([]uint32, f.events+1)
	ends := u.starts[1:]
	sections := c
	if !u.eachPosting(f, &sections, func(_ uint32, ordinal, _ int) { ends[ordinal]++ }) || sections.next != len(c.b) {
		return false
	}
	total := uint32(0)
	for i, n := range ends {
		ends[i] = total // the start of the event's cells; it advances to their end
		total += n
	}
	u.cells = make([]cell, total)
	u.values = u.values[:0]
	objects, ok := f.objects(c.b[c.next:])
	if !ok {
		return false
	}
	if u.named, ok = u.objects.read(objects, f.events); !ok {
		return false
	}
	return u.eachPosting(f, &c, func(value uint32, ordinal, count int) {
		u.cells[ends[ordinal]] = cell{value, count}
		ends[ordinal]++
	})
}

// eachPosting calls fn for every posting of the sections of facets at c and advances
// c behind the last section. It appends the values to u.values.
func (u *unpacked) eachPosting(f frame, c *cursor, fn func(value uint32, ordinal, count int)) bool {
	list := f.facets
	for range f.listed {
		name := list.text()
		facet := u.text[list.next-len(name) : list.next]
		size := list.unsigned()
		if size > uint64(len(c.b)-c.next) {
			return false
		}
		if string(name) == objectsFacet || u.skips != nil && u.skips(name) {
			c.next += int(size)
			continue
		}
		section := cursor{b: c.b[:c.next+int(size)], next: c.next}
		for section.next < len(section.b) && !section.damaged {
			value := section.text()
			u.values = append(u.values, affinity.Count{Facet: facet, Value: u.text[section.next-len(value) : section.next]})
			u.readPostings(&section, fn)
		}
		if section.damaged {
			return false
		}
		c.next = section.next
	}
	return true
}

// readPostings calls fn for the postings of the last value.
func (u *unpacked) readPostings(c *cursor, fn func(value uint32, ordinal, count int)) {
	head := c.unsigned()
	ordinal, events := uint64(0), uint64(len(u.times))
	for range head / 2 {
		since, count := c.unsigned(), uint64(1)
		if head&1 != 0 {
			more := since&1 != 0
			if since /= 2; more {
				count = c.unsigned()
			}
		}
		if ordinal += since; since >= events || ordinal >= events || !countable(count) {
			c.damaged = true
		}
		if c.damaged {
			return
		}
		fn(uint32(len(u.values)-1), int(ordinal), int(count))
	}
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
