package history

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Forms of the postings of a group.
const (
	formOne = iota
	formAll
	formBits
	formList

	formMask     = 3
	groupCounted = 4 // a count is not 1
	groupSeveral = 8 // values
	groupShift   = 4 // of the distance
)

// readHead reads the head of a group at p and the number of its values.
func readHead(b []byte, p int) (head uint64, values, next int, ok bool) {
	head, next = uvarint(b, p)
	more := uint64(0)
	if head&groupSeveral != 0 {
		more, next = uvarint(b, next)
		more++
	}
	if next > len(b) || more > uint64(len(b)) {
		return 0, 0, 0, false
	}
	return head, 1 + int(more), next, true
}

// postings are those of a group: the events that have its values, in order.
type postings struct {
	ordinals []uint32
	counts   []uint64 // by ordinal; empty: all are 1
}

// read decodes the postings at p of a group with this head, in a block of so many
// events. It returns the offset behind them.
func (l *postings) read(b []byte, p int, head uint64, events int) (next int, ok bool) {
	l.ordinals, l.counts = l.ordinals[:0], l.counts[:0]
	switch head & formMask {
	case formOne:
		ordinal, next := uvarint(b, p)
		if next > len(b) || ordinal >= uint64(events) {
			return 0, false
		}
		l.ordinals, p = append(l.ordinals, uint32(ordinal)), next
	case formAll:
		for i := range events {
			l.ordinals = append(l.ordinals, uint32(i))
		}
	case formBits:
		end := p + (events+7)/8
		if end > len(b) {
			return 0, false
		}
		for i, x := range b[p:end] {
			for ; x != 0; x &= x - 1 {
				l.ordinals = append(l.ordinals, uint32(8*i+bits.TrailingZeros8(x)))
			}
		}
		if n := len(l.ordinals); n > 0 && int(l.ordinals[n-1]) >= events {
			return 0, false
		}
		p = end
	default:
		return l.readList(b, p, head&groupCounted != 0, events)
	}
	if head&groupCounted == 0 {
		return p, true
	}
	for range l.ordinals {
		count, next := uvarint(b, p)
		if next > len(b) || !countable(count) {
			return 0, false
		}
		l.counts, p = append(l.counts, count), next
	}
	return p, true
}

func (l *postings) readList(b []byte, p int, counted bool, events int) (next int, ok bool) {
	n, p := uvarint(b, p)
	if p > len(b) || n > uint64(len(b)-p) {
		return 0, false
	}
	ordinal := uint64(0)
	for range n {
		since, count := uint64(0), uint64(1)
		since, p = uvarint(b, p)
		if counted {
			more := since&1 != 0
			if since /= 2; more {
				count, p = uvarint(b, p)
			}
			l.counts = append(l.counts, count)
		}
		ordinal += since
		if since >= uint64(events) || ordinal >= uint64(events) || p > len(b) || !countable(count) {
			return 0, false
		}
		l.ordinals = append(l.ordinals, uint32(ordinal))
	}
	return p, true
}

// count returns the count of the i-th posting.
func (l *postings) count(i int) uint64 {
	if len(l.counts) == 0 {
		return 1
	}
	return l.counts[i]
}

// append appends the postings in their shortest form, in a block of so many events.
// It returns the form, with groupCounted if a count is not 1.
func (l *postings) append(dst []byte, events int) (all []byte, head uint64) {
	if slices.ContainsFunc(l.counts, func(n uint64) bool { return n != 1 }) {
		head = groupCounted
	}
	n, start := len(l.ordinals), len(dst)
	for i := 1; i < n; i++ {
		if l.ordinals[i] == l.ordinals[i-1] { // only a list holds an event twice
			return l.appendList(dst, head), head | formList
		}
	}
	switch n {
	case events:
		return l.appendCounts(dst, head), head | formAll
	case 1:
		return l.appendCounts(binary.AppendUvarint(dst, uint64(l.ordinals[0])), head), head
	}
	dst = l.appendList(dst, head)
	if size := l.bitsSize(events, head); size >= len(dst)-start {
		return dst, head | formList
	}
	dst = append(dst[:start], make([]byte, (events+7)/8)...)
	for _, o := range l.ordinals {
		dst[start+int(o>>3)] |= 1 << (o & 7)
	}
	return l.appendCounts(dst, head), head | formBits
}

func (l *postings) appendList(dst []byte, head uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(l.ordinals)))
	before := uint32(0)
	for i, o := range l.ordinals {
		since := uint64(o - before)
		before = o
		switch {
		case head == 0:
			dst = binary.AppendUvarint(dst, since)
		case l.counts[i] == 1:
			dst = binary.AppendUvarint(dst, 2*since)
		default:
			dst = binary.AppendUvarint(binary.AppendUvarint(dst, 2*since+1), l.counts[i])
		}
	}
	return dst
}

func (l *postings) appendCounts(dst []byte, head uint64) []byte {
	if head == 0 {
		return dst
	}
	for _, n := range l.counts {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// bitsSize returns the bytes of the postings as bits.
func (l *postings) bitsSize(events int, head uint64) int {
	size := (events + 7) / 8
	if head == 0 {
		return size
	}
	for _, n := range l.counts {
		size += uvarintLen(n)
	}
	return size
}
