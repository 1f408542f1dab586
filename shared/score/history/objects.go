package history

import (
	"encoding/binary"
	"strings"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/wire"
)

// A block says which objects its events name in a section of its own, which scoring
// skips:
//
//	var   length in bytes of the names of indexes, then each of them: text
//	var   the objects, up to the end of the section. Of each:
//	      text  var: index of the name in the list above, then the objectID
//	      var   2 x number of postings, + 1 if any position is not 1
//	      var   the postings, in order of ordinals:
//	            if all positions are 1: difference from the previous ordinal (from 0)
//	            otherwise: 2 x that difference, + 1 and followed by the position if the
//	            position is not 1
//
// A posting's position is that of the object in its event, from 1.

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
		b.key = append(binary.AppendUvarint(b.key[:0], place), id...)
		b.post(b.value(objectsPlace, string(b.key)), ordinal, i+1)
	}
}

// appendObjects appends the section of objects.
func (b *Builder) appendObjects(dst []byte) []byte {
	b.key = b.key[:0]
	for _, name := range b.indexes {
		b.key = wire.AppendText(b.key, name)
	}
	dst = wire.AppendText(dst, b.key)
	if b.objects.n == 0 {
		return dst
	}
	for at := b.objects.first; ; {
		v := &b.values[at]
		dst = wire.AppendText(dst, b.text[v.start:v.end])
		dst = b.appendPositions(dst, v)
		if at = v.next; at == 0 {
			return dst
		}
	}
}

// appendPositions appends the postings of an object.
func (b *Builder) appendPositions(dst []byte, v *valueList) []byte {
	head := 2 * uint64(v.n)
	if v.mixed {
		head++
	}
	dst = binary.AppendUvarint(dst, head)
	before := uint32(0)
	for at := v.first; ; {
		p := &b.postings[at]
		since := uint64(p.ordinal - before)
		switch {
		case !v.mixed:
			dst = binary.AppendUvarint(dst, since)
		case p.count == 1:
			dst = binary.AppendUvarint(dst, 2*since)
		default:
			dst = binary.AppendUvarint(dst, 2*since+1)
			dst = binary.AppendUvarint(dst, uint64(p.count))
		}
		before = p.ordinal
		if at = p.next; at == 0 {
			return dst
		}
	}
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

// read reads the section of objects of a block. It returns false if the section is
// damaged; then l is undefined. What of returns shares no memory with the section.
func (l *objectList) read(section []byte, events int) bool {
	c := cursor{B: section}
	l.indexes, l.values, l.cells = l.indexes[:0], l.values[:0], l.cells[:0]
	for names := (cursor{B: c.Text()}); names.Next < len(names.B); {
		name := names.Text()
		if names.Damaged {
			return false
		}
		l.indexes = append(l.indexes, string(name))
	}
	text := string(section)
	l.starts, l.places = resize(l.starts, events+1), resize(l.places, events)
	clear(l.starts)
	for c.Next < len(section) && !c.Damaged {
		value := c.Text()
		index, start := uvarint(value, 0)
		if index >= uint64(len(l.indexes)) || start > len(value) {
			return false
		}
		l.values = append(l.values, text[c.Next-len(value)+start:c.Next])
		if !l.readPostings(&c, uint32(index)) {
			return false
		}
	}
	return !c.Damaged && l.arrange()
}

// readPostings reads the postings of the last value and counts those of each event.
func (l *objectList) readPostings(c *cursor, index uint32) bool {
	head := c.Unsigned()
	ordinal, events := uint64(0), uint64(len(l.places))
	for range head / 2 {
		since, position := c.Unsigned(), uint64(1)
		if head&1 != 0 {
			more := since&1 != 0
			if since /= 2; more {
				position = c.Unsigned()
			}
		}
		ordinal += since
		if c.Damaged || since >= events || ordinal >= events || position-1 >= uint64(len(c.B)) {
			return false
		}
		l.cells = append(l.cells, objectCell{uint32(ordinal), uint32(len(l.values) - 1), index, uint32(position)})
		l.starts[ordinal+1]++
	}
	return !c.Damaged
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
