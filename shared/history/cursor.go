package history

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// cursor takes stored bytes apart. What does not fit makes it damaged, and from then on it reads zeros.
type cursor struct {
	b       []byte
	next    int // place in b
	damaged bool
}

// size reads how many items of at least this many bytes follow. No more can be than there are bytes, which bounds
// what is allocated for them.
func (c *cursor) size(each int) int {
	n := c.unsigned()
	if n > uint64((len(c.b)-c.next)/each) {
		c.damaged = true
		return 0
	}
	return int(n)
}

// number reads what is counted.
func (c *cursor) number() int {
	n := c.unsigned()
	if n > math.MaxInt {
		c.damaged = true
		return 0
	}
	return int(n)
}

func (c *cursor) text() []byte { return c.take(c.size(1)) }

func (c *cursor) take(n int) []byte {
	if c.damaged || n > len(c.b)-c.next {
		c.damaged = true
		return nil
	}
	c.next += n
	return c.b[c.next-n : c.next]
}

func (c *cursor) byte() byte {
	b := c.take(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (c *cursor) unsigned() uint64 {
	n, next := uvarint(c.b, c.next)
	if next > len(c.b) || c.damaged {
		c.damaged = true
		return 0
	}
	c.next = next
	return n
}

func (c *cursor) signed() int64 {
	n := c.unsigned()
	return int64(n>>1) ^ -int64(n&1) // zigzag
}

// uvarint reads a varint at p, and returns where the next byte is: beyond the end if there is no varint at p.
func uvarint(b []byte, p int) (uint64, int) {
	if p < len(b) && b[p] < 0x80 { // one byte: nearly always
		return uint64(b[p]), p + 1
	}
	return longUvarint(b, p)
}

func longUvarint(b []byte, p int) (uint64, int) {
	if p >= len(b) {
		return 0, len(b) + 1
	}
	n, size := binary.Uvarint(b[p:])
	if size <= 0 {
		return 0, len(b) + 1
	}
	return n, p + size
}

// wordUvarint is uvarint without a branch on the length: for varints of up to 8 bytes, of which there are 8 at p. It
// returns p if there is a longer one.
func wordUvarint(b []byte, p int) (uint64, int) {
	x := binary.LittleEndian.Uint64(b[p:])
	ends := ^x & 0x8080808080808080 // the highest bit of each byte that ends a varint
	if ends == 0 {
		return 0, p
	}
	x &= ends ^ (ends - 1) // the bytes of the first
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	x = x&0x000000000fffffff | x&0x0fffffff00000000>>4
	return x, p + (bits.TrailingZeros64(ends)+1)>>3
}
