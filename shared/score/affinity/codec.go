package affinity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/wire"
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

// AppendBinary appends the stored form of a whole profile to dst.
func (p Profile) AppendBinary(dst []byte) []byte {
	start := len(dst)
	dst = p.appendAffinities(p.appendHeader(dst))
	sum := wire.Checksum(dst[start+headerSize:])
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
			dst = wire.AppendText(dst, h.String())
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
		dst = wire.AppendText(dst, a.Facet)
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
		dst = wire.AppendText(dst, f)
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.Affinities)))
	for _, a := range p.Affinities {
		dst = binary.AppendUvarint(dst, uint64(places[a.Facet]))
		dst = wire.AppendText(dst, a.Value)
		for _, score := range a.Scores {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
		}
	}
	return dst
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
	if wire.Checksum(b[headerSize:]) != binary.LittleEndian.Uint32(b[1:]) {
		return Profile{}, errors.New("checksum does not match")
	}
	r := reader{wire.Reader{B: b, Next: headerSize}}
	p := r.header(b[0])
	facets := make([]string, r.Size(1))
	for i := range facets {
		facets[i] = string(r.Text())
	}
	k := max(1, len(p.HalfLives))
	listed := r.Size(2 + 8*k)
	if !bounded(b[0]) {
		p.Total = listed
	}
	n := listed
	if limit > 0 && limit < listed && !(r.chooses(bounds, b[0], listed, len(facets), k)) {
		n = limit
	}
	r.affinities(&p, facets, n, k)
	if r.Damaged || n == listed && r.Next < len(b) || p.Total < listed {
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
	if b.fit(listed, len(r.B)) || bounded(format) && k == 1 {
		return false
	}
	if b.NameBytes > 0 && len(r.B) > b.NameBytes || b.Values > 0 && listed > b.Values {
		return true
	}
	copied, values := *r, make([]int, facets)
	for range listed {
		place := copied.Unsigned()
		copied.Text()
		copied.Take(8 * k)
		if place >= uint64(facets) || copied.Damaged {
			return true
		}
		if values[place]++; values[place] > b.FacetValues {
			return true
		}
	}
	return false
}

// reader parses stored bytes.
type reader struct{ wire.Reader }

func (r *reader) header(format byte) Profile {
	p := Profile{
		StrategyVersion: r.Signed(),
		RetentionDays:   int(r.Signed()),
		Anchor:          r.Signed(),
		DeletedUntil:    r.Signed(),
		LastEventAt:     r.Signed(),
		Until:           r.Signed(),
	}
	if p.ReceivedUntil = p.DeletedUntil; format >= formatDeleted {
		p.ReceivedUntil = r.Signed()
	}
	if format == formatMarked {
		p.Marks = r.Signed()
	}
	flags := r.Take(1)
	p.Known = len(flags) == 1 && flags[0]&flagKnown != 0
	if n := r.Size(1); n > 0 {
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
	p.Total = int(r.Unsigned())
	k := max(1, len(p.HalfLives))
	n := r.Size(1 + 8*k)
	if n > 0 {
		p.LeftOut = make([]Affinity, n)
	}
	for i := range p.LeftOut {
		a := Affinity{Facet: string(r.Text()), Scores: make([]float64, k)}
		for j := range a.Scores {
			a.Scores[j] = r.Float()
		}
		p.LeftOut[i] = a
	}
}

func (r *reader) halfLife(format byte) strategy.HalfLife {
	if format == formatDays {
		days := r.Unsigned()
		if days < 1 || days > strategy.MaxHalfLifeDays {
			r.Damaged = true
			return strategy.HalfLife{}
		}
		return strategy.Days(int(days))
	}
	h, err := strategy.ParseHalfLife(string(r.Text()))
	if _, events := h.Events(); err != nil || events {
		r.Damaged = true
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
	start, text := r.Next, r.peek(n, k) // all values share one string
	for i := range p.Affinities {
		a := &p.Affinities[i]
		place := r.Unsigned()
		value := len(r.Text())
		if r.Damaged || place >= uint64(len(facets)) {
			r.Damaged = true
			return
		}
		a.Facet = facets[place]
		a.Value = text[r.Next-value-start : r.Next-start]
		a.Scores, scores = scores[:k:k], scores[k:]
		for j := range a.Scores {
			a.Scores[j] = r.Float()
		}
	}
}

// peek returns the bytes of the next n affinities without consuming them.
func (r *reader) peek(n, k int) string {
	copied := *r
	for range n {
		copied.Unsigned()
		copied.Text()
		copied.Take(8 * k)
	}
	r.Damaged = copied.Damaged
	return string(r.B[r.Next:copied.Next])
}
