package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The stored form of a block. Integers are unsigned varints as in encoding/binary, unless said otherwise; text is its
// length in bytes, then the bytes. An event is known by its ordinal: its place in the order of the block, from 0.
//
//	offset  size
//	0       1     format: 1
//	1       4     CRC-32C of all that follows, little-endian
//	5       var   time of the first event in ms: a signed varint
//	        var   time from the first event to the last, in ms
//	        var   number of events
//	        var   length in bytes of the kinds, then each of them, sorted:
//	              var   type, name: text
//	        var   number of facets, then of each:
//	              var   name: text
//	              var   length of its section in bytes
//	        var   length in bytes of the times, then for each event but the first:
//	              var   time since the event before it
//	        var   for each event: the place of its kind in the list above; of up to 128 kinds always one byte
//	        var   the sections of the facets, in the order of the list above, each to its length, for each value:
//	              var   value: text
//	              var   2 x number of postings, + 1 if a count among them is not 1
//	              var   the postings, in order of ordinals:
//	                    where all counts are 1: distance of the ordinal from the one before it (from 0)
//	                    otherwise 2 x that distance, and then + 1 and followed by the count if that is not 1
//
// An event that counts nothing is in no posting. Sections that a strategy does not score are skipped, and whoever
// finds all events outside the window skips the rest. This is stored data: another layout is another format byte.
const (
	blockFormat = 1
	blockHeader = 5
	shortKinds  = 128 // so many, at most, have places of one byte
)

// Check reports whether a block is as it was written: nil, ErrNewer for another format, or how it is damaged.
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

// frame is a block taken apart as far as it says by itself where its parts are.
type frame struct {
	first  int64 // ms
	span   uint64
	events int
	kinds  []byte
	facets cursor // at the first of the list
	listed int    // how many there are
	times  []byte
	rest   []byte // kinds of events, then sections
}

// open takes a checked block apart.
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
	// So many events that there is a byte for the kind of each; times that are numbers.
	ok := f.events <= len(f.rest) && (f.events > 0 || f.span == 0) &&
		f.span <= math.MaxInt64 && f.first <= math.MaxInt64-int64(f.span)
	return f, ok
}

// readTimes reads the times of the events into times, which has room for as many.
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
