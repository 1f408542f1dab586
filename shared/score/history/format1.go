package history

import "math"

// The stored form of a block of format 1, with the words of block.go. Versions that
// know no other format may run beside this one (Builder.SetFormat), and blocks of
// this format stay readable.
//
//	offset  size
//	0       1     format: 1
//	1       4     CRC-32C of all bytes that follow, little-endian
//	5       var   time of the first event in ms: a signed varint
//	        var   time from the first event to the last, in ms
//	        var   number of events
//	        var   length in bytes of the kinds, then each of them, sorted:
//	              var   type, name: text
//	        var   number of facets, then of each:
//	              var   name: text
//	              var   length of its section in bytes
//	        var   length in bytes of the times, then for each event except the first:
//	              var   time since the previous event
//	        var   for each event: index of its kind in the list above; always one byte if there are up to 128 kinds
//	        var   the sections of the facets, in the order of the list above. For each value:
//	              var   value: text
//	              var   2 x number of postings, + 1 if any count is not 1
//	              var   the postings, in order of ordinals:
//	                    if all counts are 1: difference from the previous ordinal (from 0)
//	                    otherwise: 2 x that difference, + 1 and followed by the count if the count is not 1
//
// The section of objects (see objects.go) is the last one, a facet by its form.
// Blocks of older versions may lack it.
const (
	shortKinds  = 128 // up to this many kinds have one-byte indexes
	varintKinds = -1  // the width of the indexes of more kinds
)

func (f *frame) readFormat1(block []byte) bool {
	c := cursor{b: block, next: blockHeader}
	f.first, f.span, f.events, f.kinds = c.signed(), c.unsigned(), c.size(1), c.text()
	f.facets = cursor{b: block, next: c.next}
	for range c.size(2) {
		c.text()
		c.unsigned()
	}
	f.facets.b = block[:c.next]
	f.times = c.text()
	if c.damaged || !f.countKinds() {
		return false
	}
	if f.width = 8; f.listed > shortKinds {
		f.width = varintKinds
	}
	// At least one byte for the kind of each event; times that do not overflow.
	if f.events > len(block)-c.next || f.events == 0 && f.span > 0 ||
		f.span > math.MaxInt64 || f.first > math.MaxInt64-int64(f.span) {
		return false
	}
	f.cutKinds(&c)
	f.sections = c
	return !c.damaged
}

// cutKinds sets the indexes of the kinds of events.
func (f *frame) cutKinds(c *cursor) {
	if f.width != varintKinds {
		f.indexes = c.take(f.events)
		return
	}
	start := c.next
	for range f.events {
		c.unsigned()
	}
	f.indexes = c.b[start:c.next]
}

func (f *frame) readVarintKinds(kinds []uint32) bool {
	c := cursor{b: f.indexes}
	for i := range kinds {
		kind := c.unsigned()
		if c.damaged || kind >= uint64(f.listed) {
			return false
		}
		kinds[i] = uint32(kind)
	}
	return true
}

// nextFormat1 is next for a block of format 1.
func (s *sectionCursor) nextFormat1() bool {
	for s.list.next < len(s.list.b) && !s.list.damaged {
		name, end := s.list.text(), s.list.next
		if !s.cut(s.list.unsigned()) {
			return false
		}
		if string(name) != objectsFacet {
			s.id, s.name, s.end = -1, name, end
			return true
		}
		s.objects = s.body.b[s.body.next:]
	}
	return false
}
