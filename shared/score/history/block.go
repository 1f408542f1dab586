package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/wire"
)

// The stored form of a block. Integers are unsigned varints as in encoding/binary
// unless marked. A text is its length in bytes, then the bytes. An event is
// identified by its ordinal: its index in the order of the block, from 0. A term is
// a kind of event, a facet or a value; its id is its index in the dictionary of the
// block.
//
//	offset  size
//	0       1     format: 2
//	1       4     CRC-32C of all bytes except these four, little-endian
//	5       1     flags: bit 0 is set if the block has a dictionary; the others are 0
//	        var   generation of the dictionary, if any: a signed varint
//	        4     checksum of the dictionary, if any, little-endian
//	        var   time of the first event in ms: a signed varint
//	        var   number of events
//	        var   length in bytes of the kinds, then each of them:
//	              var   its id + 1, or 0 and then type, name: text
//	        var   for each event, the index of its kind in the list above: packed bits
//	              (see kindBits), from the lowest bit of the first byte on
//	        var   length in bytes of the times, then for each event except the first:
//	              var   time since the previous event
//	        var   length in bytes of the section of objects, then the section
//	        var   the sections of the facets, up to the end of the block. Of each:
//	              var   its id + 1, or 0 and then its name: text
//	              var   length in bytes of the groups, then each of them
//
// A group is some values of a facet that the same events have, equally often:
//
//	var   16 x distance, + 8 if the group has several values, + 4 if a count is not 1,
//	      + the form of the postings. The distance is that of the id of the group's
//	      first value from the id of the first value of the group before (from -1).
//	      It is 0 if the group's values are texts
//	var   number of values - 2, if the group has several
//	var   the postings, by their form:
//	      0     ordinal of the only event
//	      1     nothing: every event of the block
//	      2     a bit for each event, from the lowest bit of the first byte on
//	      3     number of postings, then the postings, in order of ordinals:
//	            if all counts are 1: difference from the previous ordinal (from 0)
//	            otherwise: 2 x that difference, + 1 and followed by the count if the
//	            count is not 1
//	var   if a count is not 1, and the form is not 3: the count of each event
//	var   the values: each as text or, behind the first, as the distance of its id
//	      from the one before, - 1
//
// An event without filters is in no posting. A reader skips the sections of facets
// that the strategy does not score, and everything behind the times if no event is
// inside the window. objects.go describes the section of objects. This is stored
// data: a new layout needs a new format byte.
const (
	blockFormat = 2
	blockHeader = 5

	flagDictionary = 1
)

// Check verifies the format and the checksum of a block. It returns nil,
// wire.ErrNewer for an unknown format, or an error that says how the block is
// damaged. It does not look at the block's dictionary.
func Check(block []byte) error {
	switch {
	case len(block) > 0 && block[0] > blockFormat:
		return fmt.Errorf("format %d, want %d: %w", block[0], blockFormat, wire.ErrNewer)
	case len(block) < blockHeader || block[0] != blockFormat:
		return errors.New("not a block")
	case blockSum(block) != binary.LittleEndian.Uint32(block[1:]):
		return errors.New("checksum does not match")
	}
	return nil
}

// blockSum returns the checksum of a block.
func blockSum(block []byte) uint32 {
	return wire.Checksum(block[:1], block[blockHeader:])
}

// frame holds the parts of a block.
type frame struct {
	bound      bool  // the block has a dictionary
	generation int64 // of the dictionary
	sum        uint32

	first   int64 // ms
	events  int
	kinds   []byte // as stored
	listed  int    // kinds
	width   int    // bits of an index in indexes
	indexes []byte // of the kinds of events
	times   []byte // without the first
	span    uint64 // bound of the ms from the first event to the last

	objects  []byte // the section of objects
	sections cursor // at the first section of a facet
}

// open splits a block into its parts, after verifying its checksum. It needs no
// dictionary.
func open(block []byte) (f frame, err error) {
	if err := Check(block); err != nil {
		return f, fmt.Errorf("read block of %d bytes: %w", len(block), err)
	}
	if !f.read(block) {
		return frame{}, damaged(block)
	}
	return f, nil
}

func damaged(block []byte) error {
	return fmt.Errorf("read block of %d bytes: %w", len(block), errDamaged)
}

func (f *frame) read(block []byte) bool {
	c := cursor{B: block, Next: blockHeader}
	flags := c.Byte()
	if f.bound = flags&flagDictionary != 0; f.bound {
		f.generation = c.Signed()
		if sum := c.Take(4); sum != nil {
			f.sum = binary.LittleEndian.Uint32(sum)
		}
	}
	f.first = c.Signed()
	n := c.Unsigned()
	if c.Damaged || flags > flagDictionary || n > uint64(len(block)) {
		return false
	}
	f.events, f.kinds = int(n), c.Text()
	if !f.countKinds() {
		return false
	}
	f.width = kindBits(f.listed)
	f.indexes, f.times, f.objects = c.Take((f.events*f.width+7)/8), c.Text(), c.Text()
	f.sections, f.span = c, uint64(math.MaxInt64-max(0, f.first))
	// Every event but the first has a time, and every event has a kind.
	return !c.Damaged && f.events <= len(f.times)+1 && (f.events == 0) == (f.listed == 0)
}

// kindBits returns how many bits the index of one of so many kinds has.
func kindBits(kinds int) int {
	if kinds <= 1 {
		return 0
	}
	bits := 1
	for kinds > 1<<bits {
		bits *= 2
	}
	return bits
}

// countKinds sets the number of kinds in the list.
func (f *frame) countKinds() bool {
	k := kindCursor{cursor: cursor{B: f.kinds}}
	for k.next() {
		f.listed++
	}
	return !k.Damaged
}

// kindCursor reads the list of kinds.
type kindCursor struct {
	cursor
	id        int // in the dictionary; -1: typ and name are texts
	typ, name []byte
}

// next advances to the next kind. It returns false at the end, and if the list is
// damaged.
func (k *kindCursor) next() bool {
	if k.cursor.Next == len(k.B) || k.Damaged {
		return false
	}
	if k.id = int(k.Number()) - 1; k.id < 0 {
		k.typ, k.name = k.Text(), k.Text()
	}
	return !k.Damaged
}

// pairs appends the kinds of the block to pairs.
func (f *frame) pairs(pairs []affinity.Pair, d *Dictionary) ([]affinity.Pair, bool) {
	k := kindCursor{cursor: cursor{B: f.kinds}}
	for k.next() {
		switch {
		case k.id < 0:
			pairs = append(pairs, affinity.Pair{Type: string(k.typ), Name: string(k.name)})
		case d == nil || k.id >= len(d.kinds):
			return pairs, false
		default:
			pairs = append(pairs, d.texts().kinds[k.id])
		}
	}
	return pairs, !k.Damaged
}

// readKinds decodes the index of the kind of each event into kinds.
func (f *frame) readKinds(kinds []uint32) bool {
	for i := range kinds {
		kinds[i] = f.kind(i)
		if kinds[i] >= uint32(f.listed) {
			return false
		}
	}
	return true
}

// kind returns the index of the kind of an event, which may be beyond the list.
func (f *frame) kind(i int) uint32 {
	switch b := f.indexes; f.width {
	case 0:
		return 0
	case 8:
		return uint32(b[i])
	case 16:
		return uint32(binary.LittleEndian.Uint16(b[2*i:]))
	case 32:
		return binary.LittleEndian.Uint32(b[4*i:])
	default:
		at := i * f.width
		return uint32(b[at>>3]) >> (at & 7) & (1<<f.width - 1)
	}
}

// readTimes decodes the times of the events into times, which has their length.
func (f *frame) readTimes(times []int64) bool {
	if f.events == 0 {
		return len(f.times) == 0
	}
	times[0] = f.first
	since, p, b := uint64(0), 0, f.times
	for i := 1; i < len(times); i++ {
		d, next := uint64(0), p
		if p+8 <= len(b) {
			d, next = wordUvarint(b, p)
		}
		if next == p {
			d, next = uvarint(b, p)
		}
		p = next
		if since += d; d > f.span || since > f.span || p > len(b) {
			return false
		}
		times[i] = f.first + int64(since)
	}
	return p == len(b)
}

// section is that of a facet.
type section struct {
	id   int    // of the facet in the dictionary; -1: name is a text
	name []byte // a part of the block
	end  int    // offset behind name
	body cursor
}

// sectionCursor reads the sections of facets.
type sectionCursor struct {
	rest cursor
	section
}

func (f *frame) eachSection() sectionCursor { return sectionCursor{rest: f.sections} }

// next advances to the next section. It returns false at the end, and if the block
// is damaged.
func (s *sectionCursor) next() bool {
	c := &s.rest
	if c.Next == len(c.B) || c.Damaged {
		return false
	}
	if s.id = int(c.Number()) - 1; s.id < 0 {
		s.name = c.Text()
		s.end = c.Next
	}
	n := c.Unsigned()
	if c.Damaged || n > uint64(len(c.B)-c.Next) {
		c.Damaged = true
		return false
	}
	end := c.Next + int(n)
	s.body = cursor{B: c.B[:end], Next: c.Next}
	c.Next = end
	return true
}

// done reports whether the sections end with the block.
func (s *sectionCursor) done() bool {
	return !s.rest.Damaged && s.rest.Next == len(s.rest.B)
}
