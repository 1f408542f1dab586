package segment

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

// SmallColumn is the column of a small list.
const SmallColumn = "l"

// BandColumns returns the range of columns, without its end, of the bands under a
// half-life (an index) that can hold Orders from a threshold on, in a part of an
// instant (ms).
func BandColumns(halfLife int, d Decay, threshold Order, instant int64) (from, end string) {
	lowest := uint64(0)
	if threshold != NoOrder {
		lowest = d.key(threshold, instant) >> lowBits
	}
	return bandColumn(halfLife, maxBand), bandColumn(halfLife, lowest) + "\x00"
}

func bandColumn(halfLife int, band uint64) string {
	return string(binary.BigEndian.AppendUint16([]byte{byte(halfLife)}, uint16(maxBand-band)))
}

// key returns the key of an Order in a part of an instant (ms).
func (d Decay) key(o Order, instant int64) uint64 {
	if o == NoOrder {
		return 0
	}
	whole, _ := d.halvings(instant)
	return uint64(min(max(o-Order(whole)*octave, 0), maxKey-1))
}

// posting is a user of a list, by ordinal and key under one half-life.
type posting struct {
	ordinal uint16
	key     uint64
}

// appendSmall appends a small list: sorted ordinals, and their keys under each half-life.
func appendSmall(b []byte, ordinals []uint16, keys [][]uint64) []byte {
	start := len(b)
	b = binary.AppendUvarint(append(b, format), uint64(len(ordinals)))
	b = appendOrdinals(b, ordinals)
	for _, of := range keys {
		b = appendKeys(b, of)
	}
	return wire.Seal(b, start)
}

// bandCells makes the cells of a list: of a small one, or of one whose postings it orders
// by band. It keeps its memory from list to list: begin takes that of all cells back.
type bandCells struct {
	counts []uint32 // by band
	placed []posting
	b      []byte // cells
}

func (c *bandCells) begin() { c.b = c.b[:0] }

func (c *bandCells) small(ordinals []uint16, keys [][]uint64) []byte {
	c.b = appendSmall(c.b, ordinals, keys)
	return c.b
}

// write passes the cells of a list under one half-life.
func (c *bandCells) write(halfLife int, ordinals []uint16, keys []uint64, fn func(Cell)) {
	if c.counts == nil {
		c.counts = make([]uint32, maxBand+1)
	}
	low, high, n := uint64(maxBand), uint64(0), 0
	for _, k := range keys {
		if k > 0 {
			band := k >> lowBits
			c.counts[band]++
			low, high = min(low, band), max(high, band)
			n++
		}
	}
	if n == 0 {
		return
	}
	// counts becomes the place behind the band's last posting: bands fall.
	sum := uint32(0)
	for band := high; ; band-- {
		first := sum
		sum += c.counts[band]
		c.counts[band] = first
		if band == low {
			break
		}
	}
	c.placed = slices.Grow(c.placed[:0], n)[:n]
	for i, k := range keys {
		if k > 0 {
			at := &c.counts[k>>lowBits]
			c.placed[*at] = posting{ordinals[i], k}
			*at++
		}
	}
	clear(c.counts[low : high+1])
	c.cells(halfLife, c.placed, fn)
}

// cells cuts postings, ordered by band, into cells.
func (c *bandCells) cells(halfLife int, placed []posting, fn func(Cell)) {
	for len(placed) > 0 {
		end, bands := 0, 0
		for end < len(placed) && end < smallUsers {
			end += bandEnd(placed[end:])
			bands++
		}
		if rest := len(placed) - end; rest < smallUsers { // not worth a cell
			for ; end < len(placed); bands++ {
				end += bandEnd(placed[end:])
			}
		}
		cell := placed[:end]
		column := bandColumn(halfLife, cell[0].key>>lowBits)
		start := len(c.b)
		c.b = appendBands(c.b, cell, bands)
		fn(Cell{column, c.b[start:len(c.b):len(c.b)]})
		placed = placed[end:]
	}
}

// bandEnd returns how many of the postings are in the band of the first.
func bandEnd(placed []posting) int {
	band, n := placed[0].key>>lowBits, 1
	for n < len(placed) && placed[n].key>>lowBits == band {
		n++
	}
	return n
}

func appendBands(b []byte, cell []posting, bands int) []byte {
	start := len(b)
	b = binary.AppendUvarint(append(b, format), uint64(bands))
	last := uint64(maxBand + 1)
	for rest := cell; len(rest) > 0; {
		n, band := bandEnd(rest), rest[0].key>>lowBits
		b = binary.AppendUvarint(b, last-band-1)
		b = binary.AppendUvarint(b, uint64(n))
		last, rest = band, rest[n:]
	}
	before, band := -1, uint64(maxBand+1)
	for _, p := range cell {
		if p.key>>lowBits != band {
			before, band = -1, p.key>>lowBits
		}
		b = binary.AppendUvarint(b, uint64(int(p.ordinal)-before-1))
		before = int(p.ordinal)
	}
	return wire.Seal(appendLows(b, cell), start)
}

// band is a stretch of a list: all of a small list, or the postings of one band.
type band struct {
	low, high uint64 // the keys of the band lie in [low, high)
	ordinals  []uint16
	keys      []byte
	bits      uint64 // upper bits of all keys
	width     int    // bytes of a key
}

func (b *band) key(i int) uint64 {
	if b.width == lowBytes {
		return b.bits | readLow(b.keys[i*lowBytes:])
	}
	return readKey(b.keys[i*keyBytes:])
}

// eachBand passes the bands of a list, the highest first; those of a small list as one. A
// band is valid until fn returns false, which ends the list, or true.
func eachBand(cells []Cell, halfLife int, memory *[]uint16, fn func(*band) bool) error {
	for _, cell := range cells {
		r, err := unseal(cell.Value)
		if err != nil {
			return fmt.Errorf("read a posting list: %w", err)
		}
		more := false
		if cell.Column == SmallColumn {
			more = r.small(halfLife, memory, fn)
		} else {
			more = r.bands(memory, fn)
		}
		if r.Damaged {
			return fmt.Errorf("read a posting list: %w", wire.ErrDamaged)
		}
		if !more {
			return nil
		}
	}
	return nil
}

func (r *reader) small(halfLife int, memory *[]uint16, fn func(*band) bool) bool {
	n := r.Size(1 + keyBytes)
	*memory = r.ordinals((*memory)[:0], n)
	r.Take(halfLife * n * keyBytes)
	b := band{high: uint64(maxKey), ordinals: *memory, keys: r.Take(n * keyBytes), width: keyBytes}
	return !r.Damaged && fn(&b)
}

func (r *reader) bands(memory *[]uint16, fn func(*band) bool) bool {
	head := *r
	count, users := r.Size(2), 0
	for range count {
		r.Unsigned()
		n := r.Unsigned()
		if n > MaxUsers {
			r.Damaged = true
		}
		users += int(n)
	}
	if r.Damaged || users > len(r.B)/(1+lowBytes) {
		r.Damaged = true
		return false
	}
	ordinals := *r
	keys := r.B[len(r.B)-users*lowBytes:]
	ordinals.B = r.B[:len(r.B)-len(keys)]
	head.Unsigned()
	last := uint64(maxBand + 1)
	for range count {
		gap := head.Unsigned() + 1
		n := int(head.Unsigned())
		if gap > last {
			r.Damaged = true
			return false
		}
		last -= gap
		*memory = ordinals.ordinals((*memory)[:0], n)
		if ordinals.Damaged {
			r.Damaged = true
			return false
		}
		b := band{
			low: last << lowBits, high: (last + 1) << lowBits, bits: last << lowBits,
			ordinals: *memory, keys: keys[:n*lowBytes], width: lowBytes,
		}
		keys = keys[n*lowBytes:]
		if !fn(&b) {
			return false
		}
	}
	r.Damaged = ordinals.Next != len(ordinals.B)
	return !r.Damaged
}

// BucketOf returns the bucket that holds the list of a filter in a part with buckets.
func BucketOf(facet, value string, buckets int) int {
	h := fnv.New32a()
	h.Write([]byte(facet))
	h.Write([]byte{0})
	h.Write([]byte(value))
	return int(h.Sum32() % uint32(max(buckets, 1)))
}

// Lists returns the cells of the lists of terms in the cell of a bucket, by term. They
// alias the bucket.
func Lists(bucket []byte, terms []Term) ([][]Cell, error) {
	r, err := unseal(bucket)
	if err != nil {
		return nil, fmt.Errorf("read a bucket of lists: %w", err)
	}
	lists := make([][]Cell, len(terms))
	for range r.Size(3) {
		facet, value := r.Text(), r.Text()
		list := r.Text()
		for i, t := range terms {
			if t.Facet == string(facet) && t.Value == string(value) {
				lists[i] = []Cell{{SmallColumn, list}}
			}
		}
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("read a bucket of lists: %w", err)
	}
	return lists, nil
}
