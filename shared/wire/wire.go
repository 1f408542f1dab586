// Package wire reads and writes the parts of binary cells: varints, texts, floats and a
// checksum. The packages that own the cells say what follows what. It keeps no data.
//
// A length bounds what a reader allocates by the bytes that are left. So a damaged cell costs
// no more memory than its size.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// ErrNewer means that a newer version of the engine wrote a value in a format
// that this version does not know. The value is not damaged.
var ErrNewer = errors.New("stored in a format this version does not know")

// ErrDamaged means that a value is not one that the engine wrote.
var ErrDamaged = errors.New("damaged")

const checksumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of parts, one after the other.
func Checksum(parts ...[]byte) (sum uint32) {
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// Seal appends the checksum to a value that begins at start, little-endian.
func Seal(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(b, Checksum(b[start:]))
}

// Unseal returns a reader of what follows the format byte of a sealed value. The error is
// ErrDamaged, or ErrNewer if the value has another format.
func Unseal(b []byte, format byte) (Reader, error) {
	if len(b) <= checksumSize {
		return Reader{}, ErrDamaged
	}
	content := b[:len(b)-checksumSize]
	if binary.LittleEndian.Uint32(b[len(content):]) != Checksum(content) {
		return Reader{}, ErrDamaged
	}
	if content[0] != format {
		return Reader{}, fmt.Errorf("format %d: %w", content[0], ErrNewer)
	}
	return Reader{B: content, Next: 1}, nil
}

// Reader parses stored bytes. After the first value that does not fit, Damaged is set and
// every read returns zero.
type Reader struct {
	B       []byte
	Next    int // offset in B
	Damaged bool
}

// End returns ErrDamaged unless all bytes have been read.
func (r *Reader) End() error {
	if r.Damaged || r.Next != len(r.B) {
		return ErrDamaged
	}
	return nil
}

// Unsigned reads a varint.
func (r *Reader) Unsigned() uint64 {
	if r.Next < len(r.B) && r.B[r.Next] < 0x80 && !r.Damaged { // one byte: nearly always
		r.Next++
		return uint64(r.B[r.Next-1])
	}
	return r.long()
}

func (r *Reader) long() uint64 {
	n, size := binary.Uvarint(r.B[r.Next:])
	if size <= 0 || r.Damaged {
		r.Damaged = true
		return 0
	}
	r.Next += size
	return n
}

// Signed reads a varint of binary.AppendVarint.
func (r *Reader) Signed() int64 {
	n := r.Unsigned()
	return int64(n>>1) ^ -int64(n&1) // zigzag
}

// Number reads a count that no bytes bound.
func (r *Reader) Number() int64 {
	n := r.Unsigned()
	if n > math.MaxInt64 {
		r.Damaged = true
		return 0
	}
	return int64(n)
}

// Size reads the number of items that follow, each of at least this many bytes. The number
// cannot exceed what the remaining bytes can hold, which bounds the memory of the items.
func (r *Reader) Size(each int) int {
	n := r.Unsigned()
	if n > uint64((len(r.B)-r.Next)/each) {
		r.Damaged = true
		return 0
	}
	return int(n)
}

// Take returns the next n bytes, nil if there are fewer.
func (r *Reader) Take(n int) []byte {
	if r.Damaged || n < 0 || n > len(r.B)-r.Next {
		r.Damaged = true
		return nil
	}
	r.Next += n
	return r.B[r.Next-n : r.Next]
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	b := r.Take(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// Text reads a text that AppendText wrote. It is a part of B.
func (r *Reader) Text() []byte { return r.Take(r.Size(1)) }

// Float reads a number that is finite and not negative, 8 bytes, little-endian.
func (r *Reader) Float() float64 {
	b := r.Take(8)
	if r.Damaged {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(f >= 0 && f <= math.MaxFloat64) {
		r.Damaged = true
		return 0
	}
	return f
}

// NextText appends to dst a text that AppendNext wrote, whose prefix of so many bytes is that
// of the previous one.
func (r *Reader) NextText(dst, previous []byte, shared uint64) []byte {
	if shared > uint64(len(previous)) {
		r.Damaged = true
		return dst
	}
	return append(append(dst, previous[:shared]...), r.Text()...)
}

// AppendText appends the length of a text and its bytes.
func AppendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendFloat appends what Float reads.
func AppendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// AppendNext appends a text of a sorted list, front-coded: the length of the prefix that it
// shares with the previous one, and the rest as a text.
func AppendNext(b []byte, previous, s string) []byte {
	n := Common(previous, s)
	return AppendText(binary.AppendUvarint(b, uint64(n)), s[n:])
}

// Common returns the length of the prefix that two texts share.
func Common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
