package affinity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

// The stored form of what a profile counts. Integers and texts are as in the stored
// form of a profile.
//
//	offset  size
//	0       1     format: 1
//	1       4     CRC-32C of all bytes that follow, little-endian
//	5       4     checksum of the stored profile of the same reading, little-endian
//	9       var   number of additions, unsigned
//	        var   After: signed
//	        var   number of events, unsigned, then each, newest first:
//	              var   time: signed for the first; then how much older it is than the one before, unsigned
//	              var   ID: text
//	              8     fingerprint, little-endian
//
// This is stored data: a new layout needs a new format byte. A reader that does not know
// the format computes the profile.
const (
	countedFormat = 1
	countedHeader = 9
)

// AppendBinary appends the stored form of the list to dst. profile is the stored form
// of the profile that counts its events.
func (k Counted) AppendBinary(dst, profile []byte) []byte {
	start := len(dst)
	dst = append(dst, countedFormat, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, profileSum(profile))
	dst = binary.AppendUvarint(dst, uint64(k.Additions))
	dst = binary.AppendVarint(dst, k.After)
	dst = binary.AppendUvarint(dst, uint64(len(k.Events)))
	for i, e := range k.Events {
		if i == 0 {
			dst = binary.AppendVarint(dst, e.Time)
		} else {
			dst = binary.AppendUvarint(dst, uint64(k.Events[i-1].Time)-uint64(e.Time))
		}
		dst = binary.LittleEndian.AppendUint64(wire.AppendText(dst, e.ID), e.Print)
	}
	binary.LittleEndian.PutUint32(dst[start+1:], wire.Checksum(dst[start+headerSize:]))
	return dst
}

// ParseBase parses a stored profile, its session and what it counts. An error means that
// one of them is missing, damaged, of an unknown format, or of another profile. The
// caller can then compute the profile from the log.
func (bounds Bounds) ParseBase(profile, session, counted []byte) (Base, error) {
	var b Base
	var err error
	if b.Counted, err = parseCounted(counted, profile); err != nil {
		return Base{}, fmt.Errorf("parse counted events of %d bytes: %w", len(counted), err)
	}
	if b.Session, err = ParseSession(session, profile); err != nil {
		return Base{}, err
	}
	if b.Profile, err = bounds.Parse(profile, 0); err != nil {
		return Base{}, err
	}
	events := b.Session.Events
	if len(events) > len(b.Counted.Events) || !slices.EqualFunc(events, b.Counted.Events[:len(events)],
		func(e Event, c CountedEvent) bool { return e.Time == c.Time }) {
		return Base{}, errors.New("the session does not list the newest of the counted events")
	}
	return b, nil
}

func parseCounted(b, profile []byte) (Counted, error) {
	switch {
	case len(b) < countedHeader:
		return Counted{}, errors.New("too short")
	case b[0] != countedFormat:
		return Counted{}, fmt.Errorf("format %d is not known, want %d", b[0], countedFormat)
	case wire.Checksum(b[headerSize:]) != binary.LittleEndian.Uint32(b[1:]):
		return Counted{}, errors.New("checksum does not match")
	case len(profile) < headerSize || binary.LittleEndian.Uint32(b[headerSize:]) != profileSum(profile):
		return Counted{}, ErrOtherProfile
	}
	r := reader{wire.Reader{B: b, Next: countedHeader}}
	k := Counted{Additions: int(min(r.Unsigned(), MaxAdditions)), After: r.Signed()}
	const smallest = 10 // bytes of an event
	k.Events = make([]CountedEvent, r.Size(smallest))
	for i := range k.Events {
		e := &k.Events[i]
		if i == 0 {
			e.Time = r.Signed()
		} else {
			newer := k.Events[i-1].Time
			if e.Time = int64(uint64(newer) - r.Unsigned()); e.Time > newer {
				r.Damaged = true
			}
		}
		e.ID = string(r.Text())
		if print := r.Take(8); !r.Damaged {
			e.Print = binary.LittleEndian.Uint64(print)
		}
	}
	if r.Damaged || r.Next < len(b) {
		return Counted{}, errors.New("damaged, though its checksum matches")
	}
	return k, nil
}
