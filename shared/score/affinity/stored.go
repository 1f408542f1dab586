package affinity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/affinityengine/affinity/shared/wire"
)

// Stored reads stored profiles in place, one after the other. It makes no Profile of
// them and allocates nothing for each. It reads those of the standard bounds. It is not safe for
// concurrent use.
type Stored struct {
	// Outline is the profile without its affinities: see Profile.Outline. HalfLives are
	// shared with other profiles.
	Outline Profile
	// LeavesOut reports whether the profile has values that the bounds left out.
	LeavesOut bool

	r         reader
	facets    [][]byte
	k, left   int
	scores    []float64
	halfLives []byte // as Outline.HalfLives are stored
	again     []byte
}

// Begin begins to read what AppendBinary wrote. Until the next call the caller must not
// change b. The error means that b is damaged or has an unknown format.
func (s *Stored) Begin(b []byte) error {
	if err := s.begin(b); err != nil {
		return fmt.Errorf("read stored profile of %d bytes: %w", len(b), err)
	}
	return nil
}

func (s *Stored) begin(b []byte) error {
	s.left = 0
	if len(b) < headerSize {
		return errors.New("too short")
	}
	if b[0] < formatDays || b[0] > formatMarked {
		return fmt.Errorf("format %d is not known, want %d to %d", b[0], formatDays, formatMarked)
	}
	if wire.Checksum(b[headerSize:]) != binary.LittleEndian.Uint32(b[1:]) {
		return errors.New("checksum does not match")
	}
	s.r = reader{wire.Reader{B: b, Next: headerSize}}
	s.header(b[0])
	s.facets = s.facets[:0]
	for range s.r.Size(1) {
		s.facets = append(s.facets, s.r.Text())
	}
	s.left = s.r.Size(2 + 8*s.k)
	if s.r.Damaged {
		s.left = 0
		return errDamagedProfile
	}
	if bounds := StandardBounds(); !bounded(b[0]) && !bounds.fit(s.left, len(b)) {
		p, err := bounds.parse(b, 0)
		if err != nil {
			return err
		}
		if s.again = p.AppendBinary(s.again[:0]); bounded(s.again[0]) {
			return s.begin(s.again)
		}
	}
	return nil
}

var errDamagedProfile = errors.New("damaged, though its checksum matches")

func (s *Stored) header(format byte) {
	r, p := &s.r, &s.Outline
	p.StrategyVersion, p.RetentionDays, p.Anchor = r.Signed(), int(r.Signed()), r.Signed()
	p.DeletedUntil, p.LastEventAt, p.Until = r.Signed(), r.Signed(), r.Signed()
	if p.ReceivedUntil = p.DeletedUntil; format >= formatDeleted {
		p.ReceivedUntil = r.Signed()
	}
	if p.Marks = 0; format == formatMarked {
		p.Marks = r.Signed()
	}
	flags := r.Take(1)
	p.Known = len(flags) == 1 && flags[0]&flagKnown != 0
	s.readHalfLives(format)
	s.k = max(1, len(p.HalfLives))
	if s.LeavesOut = false; bounded(format) {
		r.Unsigned() // Total
		n := r.Size(1 + 8*s.k)
		s.LeavesOut = n > 0
		for range n {
			r.Text()
			r.Take(8 * s.k)
		}
	}
	if cap(s.scores) < s.k {
		s.scores = make([]float64, s.k)
	}
	s.scores = s.scores[:s.k]
}

// readHalfLives decodes the half-lives, unless they are stored as those of the profile
// before.
func (s *Stored) readHalfLives(format byte) {
	start := s.r.Next
	n := s.r.Size(1)
	for range n {
		if format == formatDays {
			s.r.Unsigned()
		} else {
			s.r.Text()
		}
	}
	stored := s.r.B[start:s.r.Next]
	if s.r.Damaged || len(s.halfLives) > 0 && s.halfLives[0] == format && bytes.Equal(s.halfLives[1:], stored) {
		return
	}
	s.halfLives = append(append(s.halfLives[:0], format), stored...)
	decoder := reader{wire.Reader{B: stored}}
	s.Outline.HalfLives = nil
	for range decoder.Size(1) {
		s.Outline.HalfLives = append(s.Outline.HalfLives, decoder.halfLife(format))
	}
	s.r.Damaged = s.r.Damaged || decoder.Damaged
	if decoder.Damaged {
		s.halfLives = s.halfLives[:0]
	}
}

// Facets are the facets of the profile's affinities.
func (s *Stored) Facets() [][]byte { return s.facets }

// Next returns the next affinity: the index of its facet in Facets, its value, and its
// scores by half-life. They are valid until the next call. ok is false after the last
// one, and when the profile is damaged: see End.
func (s *Stored) Next() (facet int, value []byte, scores []float64, ok bool) {
	if s.left == 0 {
		return 0, nil, nil, false
	}
	s.left--
	place, value, b := s.next()
	if s.r.Damaged || place >= uint64(len(s.facets)) {
		s.r.Damaged, s.left = true, 0
		return 0, nil, nil, false
	}
	for i := range s.scores {
		score := math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if !(score >= 0 && score <= math.MaxFloat64) {
			s.r.Damaged, s.left = true, 0
			return 0, nil, nil, false
		}
		s.scores[i] = score
	}
	return int(place), value, s.scores, true
}

// next reads the parts of an affinity.
func (s *Stored) next() (place uint64, value, scores []byte) {
	r := &s.r
	if b := r.B[r.Next:]; len(b) > 2 && b[0]|b[1] < 0x80 { // both numbers have one byte: nearly always
		if value := 2 + int(b[1]); value+8*s.k <= len(b) {
			r.Next += value + 8*s.k
			return uint64(b[0]), b[2:value], b[value : value+8*s.k]
		}
	}
	return r.Unsigned(), r.Text(), r.Take(8 * s.k)
}

// End returns an error if the profile turned out to be damaged. Affinities of it may have
// been passed.
func (s *Stored) End() error {
	if s.r.Damaged || s.left == 0 && s.r.Next < len(s.r.B) {
		return fmt.Errorf("read stored profile of %d bytes: %w", len(s.r.B), errDamagedProfile)
	}
	return nil
}
