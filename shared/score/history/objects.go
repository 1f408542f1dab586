package history

import (
	"encoding/binary"
	"strings"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// A block says which objects its events name in one more section, that of a facet
// whose name is not UTF-8, so that no strategy and no event can have it. Scoring
// skips it like every section that does not score, in older versions too. Its
// values are:
//
//	byte 0, byte 1 (the form), then the names of indexes: text. It is the first
//	value. Its one posting is that of event 0, with the number of events as count.
//	var index of the name + 1, then the objectID. A posting's count is the object's
//	position in its event, from 1.
//
// An older version merges a block like any other, and then the section says nothing
// of the events that it added. Its first value shows that: the version drops it with
// event 0, or leaves a count that is not the number of events. Such a block counts
// as one without objects.
const (
	objectsFacet = "\xffo"
	objectsForm  = 1
	// roomObjects is an upper bound of the bytes of the section without its texts
	// and postings.
	roomObjects = 64
)

// addObjects adds the objects of an event.
func (b *Builder) addObjects(ordinal uint32, e *affinity.Event) {
	if len(e.ObjectIDs) == 0 {
		return
	}
	place, ok := b.byIndex[e.Index]
	if !ok {
		place = uint64(len(b.indexes))
		name := strings.Clone(e.Index)
		b.byIndex[name] = place
		b.indexes = append(b.indexes, name)
		b.size += roomName + len(name)
	}
	for i, id := range e.ObjectIDs {
		b.key = append(binary.AppendUvarint(b.key[:0], place+1), id...)
		b.post(b.value(objectsPlace, string(b.key)), ordinal, i+1)
	}
}

// appendObjects appends the section of objects.
func (b *Builder) appendObjects(dst []byte) []byte {
	b.key = append(b.key[:0], 0, objectsForm)
	for _, name := range b.indexes {
		b.key = appendText(b.key, name)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(b.key))), b.key...)
	if n := len(b.kinds); n == 1 {
		dst = append(dst, 2, 0)
	} else {
		dst = binary.AppendUvarint(append(dst, 3, 1), uint64(n))
	}
	if b.objects.n == 0 {
		return dst
	}
	return b.appendSection(dst, &b.objects)
}

// objectList holds the objects of a block by event.
type objectList struct {
	indexes []string
	places  []uint32 // by event: index of the name of its index
	starts  []uint32 // by event: offset in ids; then the end
	ids     []string

	values []string // the objects of the section, without their indexes
	cells  []objectCell
	taken  []bool // by offset in ids
}

type objectCell struct{ ordinal, value, index, position uint32 }

// of returns the index and the objects of an event.
func (l *objectList) of(ordinal int) (index string, ids []string) {
	from, to := l.starts[ordinal], l.starts[ordinal+1]
	if from == to {
		return "", nil
	}
	return l.indexes[l.places[ordinal]], l.ids[from:to:to]
}

// none reports whether an event names no objects.
func (l *objectList) none(ordinal int) bool { return l.starts[ordinal] == l.starts[ordinal+1] }

// read reads the section of objects of a block. known is false if the section does
// not say the objects of all events. Then, and if ok is false, because the section
// is damaged, l is undefined. What of returns shares no memory with the section.
func (l *objectList) read(section []byte, events int) (known, ok bool) {
	c := cursor{b: section}
	l.indexes, l.values, l.cells = l.indexes[:0], l.values[:0], l.cells[:0]
	if known, ok = l.readHead(&c, events); !known {
		return false, ok
	}
	text := string(section)
	l.starts, l.places = resize(l.starts, events+1), resize(l.places, events)
	clear(l.starts)
	for c.next < len(section) && !c.damaged {
		value := c.text()
		index, start := uvarint(value, 0)
		if index == 0 || index > uint64(len(l.indexes)) || start > len(value) {
			return false, false
		}
		l.values = append(l.values, text[c.next-len(value)+start:c.next])
		if !l.readPostings(&c, uint32(index-1)) {
			return false, false
		}
	}
	return true, !c.damaged && l.arrange()
}

// readHead reads the first value of the section. known is false if it does not hold
// for all events of the block.
func (l *objectList) readHead(c *cursor, events int) (known, ok bool) {
	if len(c.b) == 0 {
		return false, true
	}
	value := c.text()
	if c.damaged {
		return false, false
	}
	if len(value) < 2 || value[0] != 0 || value[1] != objectsForm {
		return false, true
	}
	head, since, count := c.unsigned(), c.unsigned(), uint64(1)
	if head == 3 && since == 1 {
		since, count = 0, c.unsigned()
	}
	if c.damaged {
		return false, false
	}
	if head/2 != 1 || since != 0 || count != uint64(events) {
		return false, true
	}
	for names := (cursor{b: value, next: 2}); names.next < len(value); {
		name := names.text()
		if names.damaged {
			return false, false
		}
		l.indexes = append(l.indexes, string(name))
	}
	return true, true
}

// readPostings reads the postings of the last value and counts those of each event.
func (l *objectList) readPostings(c *cursor, index uint32) bool {
	head := c.unsigned()
	ordinal, events := uint64(0), uint64(len(l.places))
	for range head / 2 {
		since, position := c.unsigned(), uint64(1)
		if head&1 != 0 {
			more := since&1 != 0
			if since /= 2; more {
				position = c.unsigned()
			}
		}
		ordinal += since
		if c.damaged || since >= events || ordinal >= events || position-1 >= uint64(len(c.b)) {
			return false
		}
		l.cells = append(l.cells, objectCell{uint32(ordinal), uint32(len(l.values) - 1), index, uint32(position)})
		l.starts[ordinal+1]++
	}
	return !c.damaged
}

// arrange gives each event its objects, in the order of their positions. It reports
// whether every position from 1 on is taken once.
func (l *objectList) arrange() bool {
	for i := 1; i < len(l.starts); i++ {
		l.starts[i] += l.starts[i-1]
	}
	l.ids = make([]string, len(l.cells)) // not reused: the caller keeps it
	l.taken = resize(l.taken, len(l.cells))
	clear(l.taken)
	for _, c := range l.cells {
		at := l.starts[c.ordinal] + c.position - 1
		if at >= l.starts[c.ordinal+1] || l.taken[at] {
			return false
		}
		l.taken[at] = true
		l.ids[at] = l.values[c.value]
		l.places[c.ordinal] = c.index
	}
	return true
}
