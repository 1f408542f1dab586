package schema

import (
	"encoding/binary"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// A JSON value begins with [ or blanks, a compact one with the number of its
// form, which is not the code of a blank:
//
//	wideV1     (operator byte, count, length, value)...
//	narrowV1   (length, facet, n, n times the items of wideV1)...
//
// Counts and lengths are uvarints.
const (
	wideV1   = 1
	narrowV1 = 2
)

// maxCount bounds a count. No event has that many objects.
const maxCount = 1 << 31

var (
	errCounts = errors.New("filter counts are damaged")
	// ErrNewer means that a later version of Affinity wrote the value.
	ErrNewer = errors.New("filter counts are of a form that this version does not read; deploy the newer version")
)

// appendNarrow appends the value of a narrow cell; counts are sorted by facet.
// Texts that are not UTF-8, which JSON cannot hold, make the value compact.
func appendNarrow(dst []byte, counts []affinity.Count, e Encoding) []byte {
	if e == JSON {
		if list := appendNarrowJSON(dst, counts); utf8.Valid(list[len(dst):]) {
			return list
		}
	}
	dst = append(dst, narrowV1)
	for len(counts) > 0 {
		n := sameFacet(counts)
		dst = append(binary.AppendUvarint(dst, uint64(len(counts[0].Facet))), counts[0].Facet...)
		dst = binary.AppendUvarint(dst, uint64(n))
		dst = appendCompact(dst, counts[:n])
		counts = counts[n:]
	}
	return dst
}

func appendNarrowJSON(dst []byte, counts []affinity.Count) []byte {
	dst = append(dst, '[')
	for i, c := range counts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, facetMember...), c.Facet)
		dst = appendString(append(dst, valueMember...), c.Value)
		dst = append(strconv.AppendInt(append(dst, countMember...), int64(c.N), 10), '}')
	}
	return append(dst, ']')
}

// appendWide appends the value of a wide cell, of counts of one facet:
// [[":","Red",2],...] as JSON.
func appendWide(dst []byte, counts []affinity.Count, e Encoding) []byte {
	if e == JSON {
		if list := appendWideJSON(dst, counts); utf8.Valid(list[len(dst):]) {
			return list
		}
	}
	return appendCompact(append(dst, wideV1), counts)
}

func appendWideJSON(dst []byte, counts []affinity.Count) []byte {
	dst = append(dst, '[')
	for i, c := range counts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, operatorItem...), c.Value)
		dst = append(strconv.AppendInt(append(dst, ','), int64(c.N), 10), ']')
	}
	return append(dst, ']')
}

func appendCompact(dst []byte, counts []affinity.Count) []byte {
	for _, c := range counts {
		dst = append(dst, event.Operator[0])
		dst = binary.AppendUvarint(dst, uint64(c.N))
		dst = append(binary.AppendUvarint(dst, uint64(len(c.Value))), c.Value...)
	}
	return dst
}

// sizeNarrow and sizeWide estimate the size of a value without escapes.
func sizeNarrow(counts []affinity.Count, e Encoding) int {
	per := 8
	if e == JSON {
		per = 48
	}
	return size(counts, per)
}

func sizeWide(counts []affinity.Count, e Encoding) int {
	per := 8
	if e == JSON {
		per = 16
	}
	return size(counts, per)
}

func size(counts []affinity.Count, per int) int {
	n := 2
	for i := range counts {
		n += per + len(counts[i].Facet) + len(counts[i].Value)
	}
	return n
}

// appendString appends a JSON string, which is UTF-8 if the text is.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		if c >= ' ' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

func eachNarrow(b []byte, fn func(facet, value []byte, n int)) error {
	if len(b) == 0 {
		return errCounts
	}
	switch b[0] {
	case narrowV1:
		return narrowCompact(b[1:], fn)
	case '[', ' ', '\t', '\n', '\r':
		return narrowJSON(b, fn)
	case wideV1:
		return errCounts
	}
	return ErrNewer
}

func narrowCompact(b []byte, fn func(facet, value []byte, n int)) error {
	for len(b) > 0 {
		facet, rest, ok := cutText(b)
		n, w := binary.Uvarint(rest)
		if !ok || n == 0 { // 0 also if the number cannot be read
			return errCounts
		}
		b = rest[w:]
		for ; n > 0; n-- {
			value, count, rest, err := cutCompact(b)
			if err != nil {
				return err
			}
			fn(facet, value, count)
			b = rest
		}
	}
	return nil
}

func eachWide(b []byte, fn func(facet, value []byte, n int)) error {
	if len(b) == 0 {
		return errCounts
	}
	switch b[0] {
	case wideV1:
		return wideCompact(b[1:], fn)
	case '[', ' ', '\t', '\n', '\r':
		return wideJSON(b, fn)
	case narrowV1:
		return errCounts
	}
	return ErrNewer
}

func wideCompact(b []byte, fn func(facet, value []byte, n int)) error {
	for len(b) > 0 {
		value, n, rest, err := cutCompact(b)
		if err != nil {
			return err
		}
		fn(nil, value, n)
		b = rest
	}
	return nil
}

// cutCompact reads one (operator, count, value) and returns the rest.
func cutCompact(b []byte) (value []byte, n int, rest []byte, err error) {
	if len(b) == 0 {
		return nil, 0, nil, errCounts
	}
	if b[0] != event.Operator[0] {
		return nil, 0, nil, ErrNewer
	}
	count, w := binary.Uvarint(b[1:])
	if w <= 0 || count > maxCount {
		return nil, 0, nil, errCounts
	}
	value, rest, ok := cutText(b[1+w:])
	if !ok {
		return nil, 0, nil, errCounts
	}
	return value, int(count), rest, nil
}

func cutText(b []byte) (text, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}
