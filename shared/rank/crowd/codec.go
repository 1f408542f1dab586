package crowd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// Every stored value begins with the number of its format and ends with a
// checksum of the rest.
const (
	format       = 1
	checksumSize = 4
)

// ErrNewer means that a newer version of the engine wrote a value in a format
// that this version does not know. The value is not damaged.
var ErrNewer = errors.New("stored in a format this version does not know")

var errDamaged = errors.New("damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends the checksum to a value that begins at start.
func seal(b []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// unseal returns a cursor on the content of a value.
func unseal(b []byte) (*cursor, error) {
	if len(b) <= checksumSize {
		return nil, errDamaged
	}
	content := b[:len(b)-checksumSize]
	if binary.LittleEndian.Uint32(b[len(content):]) != crc32.Checksum(content, castagnoli) {
		return nil, errDamaged
	}
	if content[0] != format {
		return nil, fmt.Errorf("format %d: %w", content[0], ErrNewer)
	}
	return &cursor{b: content, next: 1}, nil
}

// cursor parses the content of a value. After the first part that does not fit,
// damaged is set and every read returns zero.
type cursor struct {
	b       []byte
	next    int
	damaged bool
}

// err returns an error unless the whole content has been read.
func (c *cursor) err() error {
	if c.damaged || c.next != len(c.b) {
		return errDamaged
	}
	return nil
}

func (c *cursor) unsigned() uint64 {
	n, size := binary.Uvarint(c.b[c.next:])
	if size <= 0 || c.damaged {
		c.damaged = true
		return 0
	}
	c.next += size
	return n
}

// number reads a count of events or pairs.
func (c *cursor) number() int64 {
	n := c.unsigned()
	if n > math.MaxInt64 {
		c.damaged = true
		return 0
	}
	return int64(n)
}

// size reads the number of items that follow, each of at least this many bytes.
// The rest of the content bounds it, and so the memory that the items take.
func (c *cursor) size(each int) int {
	n := c.unsigned()
	if n > uint64((len(c.b)-c.next)/each) {
		c.damaged = true
		return 0
	}
	return int(n)
}

func (c *cursor) take(n int) []byte {
	if c.damaged || n > len(c.b)-c.next {
		c.damaged = true
		return nil
	}
	c.next += n
	return c.b[c.next-n : c.next]
}

func (c *cursor) text() string { return string(c.take(c.size(1))) }

// float reads a number that is finite and not negative.
func (c *cursor) float() float64 {
	b := c.take(8)
	if c.damaged {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(f >= 0) || math.IsInf(f, 1) {
		c.damaged = true
		return 0
	}
	return f
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// appendNext appends a text of a sorted list: the length of the prefix that it
// shares with the previous text, and the rest.
func appendNext(b []byte, previous, s string) []byte {
	n := 0
	for n < len(previous) && n < len(s) && previous[n] == s[n] {
		n++
	}
	return appendText(binary.AppendUvarint(b, uint64(n)), s[n:])
}

// nextText reads a text that appendNext wrote.
func (c *cursor) nextText(previous string) string {
	n := c.unsigned()
	if n > uint64(len(previous)) {
		c.damaged = true
		return ""
	}
	rest := c.take(c.size(1))
	if c.damaged {
		return ""
	}
	return previous[:n] + string(rest)
}

// AppendBinary appends the stored form of an object's statistics.
func (o Object) AppendBinary(b []byte) []byte {
	start := len(b)
	b = append(b, format)
	b = binary.AppendUvarint(b, uint64(o.Events))
	b = binary.AppendUvarint(b, uint64(o.Bound))
	b = binary.AppendUvarint(b, uint64(len(o.Pairs)))
	for _, p := range o.Pairs {
		b = appendText(b, p.ObjectID)
		b = binary.AppendUvarint(b, uint64(p.Count))
	}
	return seal(b, start)
}

// ParseObject decodes what Object.AppendBinary wrote. The error is ErrNewer if a
// newer version of the engine wrote it.
func ParseObject(b []byte) (Object, error) {
	c, err := unseal(b)
	if err != nil {
		return Object{}, fmt.Errorf("read statistics of an object: %w", err)
	}
	o := Object{Events: c.number(), Bound: c.number()}
	o.Pairs = make([]Pair, c.size(2))
	for i := range o.Pairs {
		o.Pairs[i] = Pair{c.text(), c.number()}
	}
	if err := c.err(); err != nil {
		return Object{}, fmt.Errorf("read statistics of an object: %w", err)
	}
	return o, nil
}
