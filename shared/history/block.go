package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The stored form of a block. Integers are unsigned varints as in
// encoding/binary unless marked. A text is its length in bytes, then the bytes.
// An event is identified by its ordinal: its index in the order of the block,
// from 0.
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
// The last section is that of the objects of events (see objects.go), a facet by
// its form. Older versions built blocks without it, and skip it.
//
// An event without filters is in no posting. A reader skips the sections of
// facets that the strategy does not score, and everything behind the times if
// no event is inside the window. This is stored data: a new layout needs a new
// format byte.
const (
	blockFormat = 1
	blockHeader = 5
	shortKinds  = 128 // up to this many kinds have one-byte indexes
)

// Check verifies the format and the checksum of a block. It returns nil,
// ErrNewer for an unknown format, or an error that says how the block is
// damaged.
func Check(block []byte) error {
	switch {
	case len(block) > 0 && block[0] > blockFormat:
		return fmt.Errorf("format %d, want %d: %w", block[0], blockFormat, ErrNewer)
	case len(block) < blockHeader || block[0] != blockFormat:
		return errors.New("not a block")
	case crc32.Checksum(block[blockHeader:], castagnoli) != binary.LittleEndian.Uint32(block[1:]):
		return errors.New("checksum does not match")
	}
	return nil
}

// frame holds the parts of a block whose positions the block states.
type frame struct {
	first  int64 // ms
	span   uint64
	events int
	kinds  []byte
	facets cursor // at the first facet of the list
	listed int    // number of facets
	times  []byte
	rest   []byte // kinds of events, then sections
}

// open splits a checked block into its parts.
func open(block []byte) (frame, bool) {
	c := cursor{b: block, next: blockHeader}
	f := frame{first: c.signed(), span: c.unsigned(), events: c.size(1), kinds: c.text()}
	f.listed = c.size(2)
	f.facets = c
	for range f.listed {
		c.text()
		c.unsigned()
	}
	f.times = c.text()
	if c.damaged {
		return frame{}, false
	}
	f.rest = block[c.next:]
	// At least one byte for the kind of each event; times that do not overflow.
	ok := f.events <= len(f.rest) && (f.events > 0 || f.span == 0) &&
		f.span <= math.MaxInt64 && f.first <= math.MaxInt64-int64(f.span)
	return f, ok
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
	return p == len(b) && since == f.span
}
