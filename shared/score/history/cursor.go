package history

import (
	"encoding/binary"
	"math/bits"

	"github.com/affinityengine/affinity/shared/wire"
)

// cursor parses stored bytes.
type cursor = wire.Reader

// uvarint reads a varint at p and returns the offset behind it. The offset is
// beyond the end of b if p does not hold a varint.
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

// wordUvarint is uvarint without a branch on the length. It requires 8 bytes at
// p and reads varints of up to 8 bytes. For a longer one it returns p.
func wordUvarint(b []byte, p int) (uint64, int) {
	x := binary.LittleEndian.Uint64(b[p:])
	ends := ^x & 0x8080808080808080 // the highest bit of each byte that ends a varint
	if ends == 0 {
		return 0, p
	}
	x &= ends ^ (ends - 1) // the bytes of the first varint
	x = x&0x007f007f007f007f | x&0x7f007f007f007f00>>1
	x = x&0x00003fff00003fff | x&0x3fff00003fff0000>>2
	x = x&0x000000000fffffff | x&0x0fffffff00000000>>4
	return x, p + (bits.TrailingZeros64(ends)+1)>>3
}
