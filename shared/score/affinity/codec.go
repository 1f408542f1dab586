package affinity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// The stored form of a profile. Integers are varints as in encoding/binary, the
// signed ones zigzag. A text is its length in bytes, unsigned, then the bytes.
// k is the number of half-lives, or 1 without half-lives.
//
//	offset  size
//	0       1     format: 2, or 3 if a half-life is not a plain number of days, or 4
//	              if the profile counts values that it does not list, or 5 if its
//	              ReceivedUntil is not its DeletedUntil, or 6 if it has Marks
//	1       4     CRC-32C of all bytes that follow, little-endian
//	5       var   StrategyVersion, RetentionDays, Anchor, DeletedUntil, LastEventAt, Until: signed
//	        var   from format 5 on: ReceivedUntil, signed
//	        var   in format 6 only: Marks, signed
//	        1     flags: bit 0 is Known, the others are 0
//	        var   number of half-lives, then each: days, unsigned; from format 3 on its text
//	        var   from format 4 on: Total, unsigned; number of facets of which values are
//	              left out, then each: its name, text; the highest scores left out, 8 k
//	        var   number of facets, then the name of each: text
//	        var   number of affinities, unsigned, then each of them, in the profile's order:
//	              var   place of its facet in the list above, unsigned
//	              var   value: text
//	              8 k   scores: IEEE 754, little-endian
//
// An affinity with one score takes 10 bytes plus its value. Affinities are in
// the profile's order, so a reader of the best few does not decode the rest.
// This is stored data: a new layout needs a new format byte.
//
// Profiles of formats 2 and 3 list everything that they count. If one exceeds the bounds,
// these choose on reading.
const (
	formatDays    = 2
	formatTexts   = 3
	formatBounded = 4
	formatDeleted = 5
	formatMarked  = 6
	headerSize    = 5
	flagKnown     = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary appends the stored form of a whole profile to dst.
func (p Profile) AppendBinary(dst []byte) []byte {
	start := len(dst)
	dst = p.appendAffinities(p.appendHeader(dst))
	sum := crc32.Checksum(dst[start+headerSize:], castagnoli)
	binary.LittleEndian.PutUint32(dst[start+1:], sum)
	return dst
}

// appendHeader appends everything before the facets. It leaves the checksum
// zero.
func (p Profile) appendHeader(dst []byte) []byte {
	format := p.format()
	dst = append(dst, format, 0, 0, 0, 0)
	numbers := [...]int64{
		p.StrategyVersion, int64(p.RetentionDays), p.Anchor, p.DeletedUntil, p.LastEventAt, p.Until, p.ReceivedUntil, p.Marks,
	}
	last := len(numbers) - 2 + max(0, int(format)-formatBounded)
	for _, n := range numbers[:last] {
		dst = binary.AppendVarint(dst, n)
	}
	var flags byte
	if p.Known {
		flags |= flagKnown
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(len(p.HalfLives)))
	for _, h := range p.HalfLives {
		if days, ok := h.WholeDays(); ok && format == formatDays {
			dst = binary.AppendUvarint(dst, uint64(days))
		} else {
			dst = appendText(dst, h.String())
		}
	}
	if bounded(format) {
		dst = p.appendLeftOut(dst)
	}
	return dst
}

func (p Profile) appendLeftOut(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.Total))
	dst = binary.AppendUvarint(dst, uint64(len(p.LeftOut)))
	for _, a := range p.LeftOut {
		dst = appendText(dst, a.Facet)
		for _, score := range a.Scores {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
		}
	}
	return dst
}

// bounded reports whether profiles of a format list the values that they leave out.
func bounded(format byte) bool { return format >= formatBounded }

func (p Profile) format() byte {
	if p.Marks != 0 {
		return formatMarked
	}
	if p.ReceivedUntil != p.DeletedUntil {
		return formatDeleted
	}
	if p.Total > len(p.Affinities) || len(p.LeftOut) > 0 {
		return formatBounded
	}
	for _, h := range p.HalfLives {
		if _, ok := h.WholeDays(); !ok {
			return formatTexts
		}
	}
	return formatDays
}

func (p Profile) appendAffinities(dst []byte) []byte {
	places := map[string]int{}
	var facets []string
	for _, a := range p.Affinities {
		if _, ok := places[a.Facet]; !ok {
			places[a.Facet] = len(facets)
			facets = append(facets, a.Facet)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(facets)))
	for _, f := range facets {
		dst = appendText(dst, f)
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Affinities)))
	for _, a := range p.Affinities {
		dst = binary.AppendUvarint(dst, uint64(places[a.Facet]))
		dst = appendText(dst, a.Value)
		for _, score := range a.Scores {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// ParseProfile is Parse of the standard bounds.
func ParseProfile(b []byte, limit int) (Profile, error) { return StandardBounds().Parse(b, limit) }

// Parse parses what AppendBinary wrote. With limit > 0 it decodes only the first
// limit affinities, and more if At needs them to choose. Total counts all of them.
// The profile shares no memory with b. An error means that b is damaged or has an
// unknown format; the caller can then compute the profile from the log.
func (bounds Bounds) Parse(b []byte, limit int) (Profile, error) {
	p, err := bounds.parse(b, limit)
	if err != nil {
		return Profile{}, fmt.Errorf("parse stored profile of %d bytes: %w", len(b), err)
	}
	return p, nil
}

func (bounds Bounds) parse(b []byte, limit int) (Profile, error) {
	if len(b) < headerSize {
		return Profile{}, errors.New("too short")
	}
	if b[0] < formatDays || b[0] > formatMarked {
		return Profile{}, fmt.Errorf("format %d is not known, want %d to %d", b[0], formatDays, formatMarked)
	}
	if crc32.Checksum(b[headerSize:], castagnoli) != binary.LittleEndian.Uint32(b[1:]) {
		return Profile{}, errors.New("checksum does not match")
	}
	r := reader{b: b, next: headerSize}
	p := r.header(b[0])
	facets := make([]string, r.size(1))
	for i := range facets {
		facets[i] = string(r.text())
	}
	k := max(1, len(p.HalfLives))
	listed := r.size(2 + 8*k)
	if !bounded(b[0]) {
		p.Total = listed
	}
	n := listed
	if limit > 0 && limit < listed && !(r.chooses(bounds, b[0], listed, len(facets), k)) {
		n = limit
	}
	r.affinities(&p, facets, n, k)
	if r.damaged || n == listed && r.next < len(b) || p.Total < listed {
		return Profile{}, errors.New("damaged, though its checksum matches")
	}
	if !bounded(b[0]) && n == listed && !bounds.fit(listed, len(b)) {
		bounds.bound(&p)
	}
	return p, nil
}

// chooses reports whether the bounds may choose, now or after decay, among the
// affinities that follow: it takes all of them.
func (r *reader) chooses(b Bounds, format byte, listed, facets, k int) bool {
	if b.fit(listed, len(r.b)) || bounded(format) && k == 1 {
		return false
	}
	if b.NameBytes > 0 && len(r.b) > b.NameBytes || b.Values > 0 && listed > b.Values {
		return true
	}
	copied, values := *r, make([]int, facets)
	for range listed {
		place := copied.unsigned()
		copied.text()
		copied.take(8 * k)
		if place >= uint64(facets) || copied.damaged {
			return true
		}
		if values[place]++; values[place] > b.FacetValues {
			return true
		}
	}
	return false
}

// reader parses stored bytes. After the first value that does not fit, damaged
// is set and every read returns zero.
type reader struct {
	b       []byte
	next    int // offset in b
	damaged bool
}

func (r *reader) header(format byte) Profile {
	p := Profile{
		StrategyVersion: r.signed(),
		RetentionDays:   int(r.signed()),
		Anchor:          r.signed(),
		DeletedUntil:    r.signed(),
		LastEventAt:     r.signed(),
		Until:           r.signed(),
	}
	if p.ReceivedUntil = p.DeletedUntil; format >= formatDeleted {
		p.ReceivedUntil = r.signed()
	}
	if format == formatMarked {
		p.Marks = r.signed()
	}
	flags := r.take(1)
	p.Known = len(flags) == 1 && flags[0]&flagKnown != 0
	if n := r.size(1); n > 0 {
		p.HalfLives = make([]strategy.HalfLife, n)
	}
	for i := range p.HalfLives {
		p.HalfLives[i] = r.halfLife(format)
	}
	if bounded(format) {
		r.leftOut(&p)
	}
	return p
}

func (r *reader) leftOut(p *Profile) {
	p.Total = int(r.unsigned())
	k := max(1, len(p.HalfLives))
	n := r.size(1 + 8*k)
	if n > 0 {
		p.LeftOut = make([]Affinity, n)
	}
	for i := range p.LeftOut {
		a := Affinity{Facet: string(r.text()), Scores: make([]float64, k)}
		for j := range a.Scores {
			a.Scores[j] = r.score()
		}
		p.LeftOut[i] = a
	}
}

func (r *reader) halfLife(format byte) strategy.HalfLife {
	if format == formatDays {
		days := r.unsigned()
		if days < 1 || days > strategy.MaxHalfLifeDays {
			r.damaged = true
			return strategy.HalfLife{}
		}
		return strategy.Days(int(days))
	}
	h, err := strategy.ParseHalfLife(string(r.text()))
	if _, events := h.Events(); err != nil || events {
		r.damaged = true
	}
	return h
}

// affinities reads the first n affinities of p, each with k scores.
func (r *reader) affinities(p *Profile, facets []string, n, k int) {
	if n == 0 {
		return
	}
	p.Affinities = make([]Affinity, n)
	scores := make([]float64, n*k)
	start, text := r.next, r.peek(n, k) // all values share one string
	for i := range p.Affinities {
		a := &p.Affinities[i]
		place := r.unsigned()
		value := len(r.text())
		if r.damaged || place >= uint64(len(facets)) {
			r.damaged = true
			return
		}
		a.Facet = facets[place]
		a.Value = text[r.next-value-start : r.next-start]
		a.Scores, scores = scores[:k:k], scores[k:]
		for j := range a.Scores {
			a.Scores[j] = r.score()
		}
	}
}

// peek returns the bytes of the next n affinities without consuming them.
func (r *reader) peek(n, k int) string {
	copied := *r
	for range n {
		copied.unsigned()
		copied.text()
		copied.take(8 * k)
	}
	r.damaged = copied.damaged
	return string(r.b[r.next:copied.next])
}

func (r *reader) score() float64 {
	b := r.take(8)
	if r.damaged {
		return 0
	}
	score := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(score >= 0 && score <= math.MaxFloat64) {
		r.damaged = true
	}
	return score
}

// size reads the number of items that follow, each of at least this many bytes.
// The number cannot exceed what the remaining bytes can hold, which bounds the
// memory allocated for the items.
func (r *reader) size(each int) int {
	n := r.unsigned()
	if n > uint64((len(r.b)-r.next)/each) {
		r.damaged = true
		return 0
	}
	return int(n)
}

func (r *reader) text() []byte { return r.take(r.size(1)) }

func (r *reader) take(n int) []byte {
	if r.damaged || n > len(r.b)-r.next {
		r.damaged = true
		return nil
	}
	r.next += n
	return r.b[r.next-n : r.next]
}

func (r *reader) unsigned() uint64 {
	if r.next < len(r.b) && r.b[r.next] < 0x80 && !r.damaged { // one byte: nearly always
		r.next++
		return uint64(r.b[r.next-1])
	}
	n, size := binary.Uvarint(r.b[r.next:])
	if !r.passed(size) {
		return 0
	}
	return n
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.b[r.next:])
	if !r.passed(size) {
		return 0
	}
	return n
}

// passed advances past a varint of this size. A size of 0 or less means that
// the bytes are not a varint.
func (r *reader) passed(size int) bool {
	if size <= 0 || r.damaged {
		r.damaged = true
		return false
	}
	r.next += size
	return true
}
