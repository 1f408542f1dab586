package segment

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

// The stored forms. Integers are unsigned varints as in encoding/binary, unless they
// have a number of bytes here. A text is its length and its bytes. Sorted texts are
// front-coded: each is the length of the prefix that it shares with the one before, and
// the rest as a text. Ordinals are sorted; the first is stored as it is, each other one
// as its distance to the one before, less 1. Every value begins with a format byte, 1, and
// ends with a CRC-32C of all that precedes, 4 bytes, little-endian. A new layout needs a
// new format byte.
//
// The key of a score in a part is its Order less that of the score 0x1p-1023 as of the
// part's Instant rounded down to a whole number of half-lives: the upper 48 bits of the
// float64 that the score was then, rounded. 0 stands for a score that counts as none.
// The upper 14 bits of a key are its band: a quarter of an octave.
//
//	small list   number of users, their ordinals, then for each half-life their keys, 6 bytes
//	             each, little-endian. Bands hold lists over 512 users of a part without buckets.
//	bands        number of bands, then of each, the highest first: the first band's complement
//	             0x3fff - band, or how far the band lies below the one before, less 1;
//	             number of users. Then the ordinals of all, each band by itself; then the
//	             lower 34 bits of their keys, in 5 bytes each, little-endian. The column is the
//	             number of the half-life, 1 byte, then the complement of the highest band,
//	             2 bytes, big-endian. A cell has 512 users or more, but for the last.
//	bucket       number of lists, then each: facet and value as texts, the size of a small
//	             list in bytes, and the list
//	index        number of rows, the first tokens of rows, front-coded
//	tokens       number of tokens; each front-coded, its prefix doubled, plus 1 if it has been
//	             blanked: then it equals the one before
//	untils       number of users, their ordinals, then for each the minute of the hour, 1 byte. The
//	             column is the hour since 1970, 4 bytes, big-endian
//	values       number of filters; each: facet and value, both front-coded, number of holders
//	set-outs     number of users, their ordinals
//	manifest     version of the manifest, 8 bytes, big-endian, then JSON
//	part         JSON
const (
	format     = 1
	smallUsers = 512 // in a list of one cell
	keyBytes   = 6
	lowBytes   = 5 // of the part of a key that its band does not say
	lowBits    = 34
	maxBand    = 1<<14 - 1
)

// reader reads the parts of stored forms.
type reader struct{ wire.Reader }

// unseal returns a reader of the content of a value.
func unseal(b []byte) (reader, error) {
	r, err := wire.Unseal(b, format)
	return reader{r}, err
}

// ordinals appends n ordinals.
func (r *reader) ordinals(dst []uint16, n int) []uint16 {
	at := -1
	for range n {
		if r.Next < len(r.B) && r.B[r.Next] < 0x80 { // one byte, without a call: nearly always
			at += int(r.B[r.Next]) + 1
			r.Next++
		} else {
			at += int(min(r.Unsigned(), MaxUsers)) + 1
		}
		if at >= MaxUsers {
			r.Damaged = true
		}
		if r.Damaged {
			return dst
		}
		dst = append(dst, uint16(at))
	}
	return dst
}

func appendOrdinals(dst []byte, ordinals []uint16) []byte {
	last := -1
	for _, o := range ordinals {
		dst = binary.AppendUvarint(dst, uint64(int(o)-last-1))
		last = int(o)
	}
	return dst
}

// appendKeys appends keys. Each is stored as a word, of which the next key takes the
// upper bytes.
func appendKeys(b []byte, keys []uint64) []byte {
	start, end := len(b), len(b)+len(keys)*keyBytes
	b = slices.Grow(b, len(keys)*keyBytes+8)[:end+8]
	for at, i := start, 0; i < len(keys); at, i = at+keyBytes, i+1 {
		binary.LittleEndian.PutUint64(b[at:], keys[i])
	}
	return b[:end]
}

func readKey(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40
}

// appendLows appends the parts of the keys of postings that their bands do not say.
func appendLows(b []byte, postings []posting) []byte {
	start, end := len(b), len(b)+len(postings)*lowBytes
	b = slices.Grow(b, len(postings)*lowBytes+8)[:end+8]
	for at, i := start, 0; i < len(postings); at, i = at+lowBytes, i+1 {
		binary.LittleEndian.PutUint64(b[at:], postings[i].key&(1<<lowBits-1))
	}
	return b[:end]
}

func readLow(b []byte) uint64 {
	_ = b[4]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32
}

// AppendOrdinals appends the stored form of sorted ordinals.
func AppendOrdinals(dst []byte, ordinals []uint16) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(append(dst, format), uint64(len(ordinals)))
	return wire.Seal(appendOrdinals(dst, ordinals), start)
}

// ParseOrdinals decodes what AppendOrdinals wrote.
func ParseOrdinals(cell []byte) ([]uint16, error) {
	r, err := unseal(cell)
	if err != nil {
		return nil, fmt.Errorf("read ordinals: %w", err)
	}
	n := r.Size(1)
	ordinals := r.ordinals(make([]uint16, 0, n), n)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("read ordinals: %w", err)
	}
	return ordinals, nil
}
