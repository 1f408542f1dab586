package affinity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/wire"
)

// The stored form of a session. Integers and texts are as in the stored form of
// a profile.
//
//	offset  size
//	0       1     format: 1
//	1       4     CRC-32C of all bytes that follow, little-endian
//	5       4     checksum of the stored profile of the same reading, little-endian
//	9       1     flags; a reader that does not know one of bits 0 to 3 computes the session
//	10      var   sections, to the end: number and length in bytes, unsigned, then the bytes
//
// A reader skips sections that it does not know, so that later versions can add
// some. Section 1 holds the events, newest first:
//
//	var   number of events, unsigned
//	var   for each event:
//	      var   time: signed for the first; then how much older it is than the one before, unsigned
//	      var   type, name, index: words
//	      var   number of objects, unsigned, then each objectID: word
//	      var   number of counts, unsigned, then each: facet and value: words, count: unsigned
//
// A word is 0, unsigned, and a text at its first use, and from then on the number
// of that use, from 1, unsigned. So the bytes of an event depend only on newer
// events, and the oldest can be left out by cutting. This is stored data: a new
// layout needs a new format byte.
const (
	sessionFormat     = 1
	sessionHeader     = 10
	sessionFlagsKnown = 0
	sessionFlagsMust  = 0x0f // the flags that a reader must know
	sectionEvents     = 1
)

// ErrOtherProfile reports that a stored session and a stored profile are not of
// the same reading.
var ErrOtherProfile = errors.New("the stored session belongs to another profile")

// AppendBinary appends the stored form of the session to dst. profile is the
// stored form of the profile of the same reading.
func (s Session) AppendBinary(dst, profile []byte) []byte {
	start := len(dst)
	dst = append(dst, sessionFormat, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, profileSum(profile))
	dst = append(dst, 0)
	events := appendEvents(nil, s.Events)
	dst = binary.AppendUvarint(dst, sectionEvents)
	dst = append(binary.AppendUvarint(dst, uint64(len(events))), events...)
	binary.LittleEndian.PutUint32(dst[start+1:], wire.Checksum(dst[start+headerSize:]))
	return dst
}

// profileSum returns the checksum in a stored profile.
func profileSum(profile []byte) uint32 {
	if len(profile) < headerSize {
		return 0
	}
	return binary.LittleEndian.Uint32(profile[1:])
}

// wordList numbers the texts of a session by their first use.
type wordList map[string]uint64

func (w wordList) append(dst []byte, text string) []byte {
	if n, ok := w[text]; ok {
		return binary.AppendUvarint(dst, n)
	}
	w[text] = uint64(len(w) + 1)
	return wire.AppendText(append(dst, 0), text)
}

func appendEvents(dst []byte, events []Event) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(events)))
	words := wordList{}
	for i, e := range events {
		if i == 0 {
			dst = binary.AppendVarint(dst, e.Time)
		} else {
			dst = binary.AppendUvarint(dst, uint64(events[i-1].Time)-uint64(e.Time))
		}
		dst = words.appendEvent(dst, e)
	}
	return dst
}

// appendEvent appends an event without its time.
func (w wordList) appendEvent(dst []byte, e Event) []byte {
	dst = w.append(w.append(w.append(dst, string(e.Type)), e.Name), e.Index)
	dst = binary.AppendUvarint(dst, uint64(len(e.ObjectIDs)))
	for _, id := range e.ObjectIDs {
		dst = w.append(dst, id)
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.Counts)))
	for _, c := range e.Counts {
		dst = w.append(w.append(dst, c.Facet), c.Value)
		dst = binary.AppendUvarint(dst, uint64(c.N))
	}
	return dst
}

// fit returns how many of the newest events fit the stored form.
func fit(events []Event) int {
	most := binary.MaxVarintLen64
	for _, e := range events {
		most += sizeAtMost(e)
	}
	if most <= maxEventBytes {
		return len(events)
	}
	words, scratch := wordList{}, []byte(nil)
	size := func(i int) int { // of event i with its time, after newer ones
		scratch = words.appendEvent(scratch[:0], events[i])
		if i == 0 {
			return len(binary.AppendVarint(scratch, events[i].Time))
		}
		return len(binary.AppendUvarint(scratch, uint64(events[i-1].Time)-uint64(events[i].Time)))
	}
	total := 0
	for i := range events {
		total += size(i)
		if total+len(binary.AppendUvarint(nil, uint64(i+1))) > maxEventBytes {
			return i
		}
	}
	return len(events)
}

// sizeAtMost bounds the encoded size of an event.
func sizeAtMost(e Event) int {
	const number, word = binary.MaxVarintLen64, 1 + binary.MaxVarintLen32
	size := 3*number + 3*word + len(e.Type) + len(e.Name) + len(e.Index)
	for _, id := range e.ObjectIDs {
		size += word + len(id)
	}
	for _, c := range e.Counts {
		size += 2*word + len(c.Facet) + len(c.Value) + number
	}
	return size
}

// ParseSession parses what AppendBinary wrote. profile is the stored profile that
// the caller has read with it; the error is ErrOtherProfile if the two are not of
// the same reading. Any other error means that b is damaged or has an unknown
// format. The caller can then compute the session from the log. The session
// shares no memory with b.
func ParseSession(b, profile []byte) (Session, error) {
	s, err := parseSession(b, profile)
	if err != nil {
		return Session{}, fmt.Errorf("parse stored session of %d bytes: %w", len(b), err)
	}
	return s, nil
}

func parseSession(b, profile []byte) (Session, error) {
	switch {
	case len(b) < sessionHeader:
		return Session{}, errors.New("too short")
	case b[0] != sessionFormat:
		return Session{}, fmt.Errorf("format %d is not known, want %d", b[0], sessionFormat)
	case wire.Checksum(b[headerSize:]) != binary.LittleEndian.Uint32(b[1:]):
		return Session{}, errors.New("checksum does not match")
	case b[9]&sessionFlagsMust&^sessionFlagsKnown != 0:
		return Session{}, fmt.Errorf("flags %x are not known", b[9])
	case len(profile) < headerSize || binary.LittleEndian.Uint32(b[headerSize:]) != profileSum(profile):
		return Session{}, ErrOtherProfile
	}
	r := reader{wire.Reader{B: b, Next: sessionHeader}}
	var events []byte
	for r.Next < len(b) && !r.Damaged {
		number := r.Unsigned()
		section := r.Text()
		if number == sectionEvents && len(section) > 0 && events == nil {
			events = section
		}
	}
	inner := sessionReader{reader: reader{wire.Reader{B: events}}, text: string(events)}
	s := Session{Events: inner.events()}
	if r.Damaged || inner.Damaged || inner.Next < len(events) {
		return Session{}, errors.New("damaged, though its checksum matches")
	}
	return s, nil
}

// sessionReader parses the events of a session. All texts share one string.
type sessionReader struct {
	reader
	text  string
	words []string
}

func (r *sessionReader) events() []Event {
	const smallest = 6 // bytes of an event
	n := r.Size(smallest)
	if n == 0 {
		return nil
	}
	events := make([]Event, n)
	for i := range events {
		e := &events[i]
		if i == 0 {
			e.Time = r.Signed()
		} else {
			newer := events[i-1].Time
			if e.Time = int64(uint64(newer) - r.Unsigned()); e.Time > newer {
				r.Damaged = true
			}
		}
		e.Type, e.Name, e.Index = event.Type(r.word()), r.word(), r.word()
		if ids := r.Size(1); ids > 0 {
			e.ObjectIDs = make([]string, ids)
		}
		for j := range e.ObjectIDs {
			e.ObjectIDs[j] = r.word()
		}
		e.Counts = r.counts()
		if r.Damaged {
			return nil
		}
	}
	return events
}

func (r *sessionReader) counts() []Count {
	n := r.Size(3)
	if n == 0 {
		return nil
	}
	counts := make([]Count, n)
	for i := range counts {
		counts[i].Facet, counts[i].Value = r.word(), r.word()
		number := r.Unsigned()
		if number == 0 || number > math.MaxInt {
			r.Damaged = true
			return nil
		}
		counts[i].N = int(number)
	}
	return counts
}

func (r *sessionReader) word() string {
	switch n := r.Unsigned(); {
	case r.Damaged:
	case n == 0:
		length := len(r.reader.Text())
		if r.Damaged {
			return ""
		}
		word := r.text[r.Next-length : r.Next]
		r.words = append(r.words, word)
		return word
	case n <= uint64(len(r.words)):
		return r.words[n-1]
	default:
		r.Damaged = true
	}
	return ""
}
