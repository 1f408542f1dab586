package event

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math"
)

// The version of the canonical form that IDs hash. IDs are stored in row keys,
// so the form must not change: a new field of events needs a new version, used
// only for events with that field.
const (
	canonicalVersion = 1
	withEventID      = 2 // of events that have an id of their client's
)

const (
	timeSent     = 'T' // followed by the client's timestamp
	timeReceived = 'R' // followed by the request and the position in it
)

// ID returns the identity of the event within its user's log: 64 bits of a
// SHA-256 over its content, as 11 characters of base64url.
//
// Two events with equal content and equal client timestamp are one event and
// have the same ID. The content has the client's eventId, if there is one, so a
// client can tell repeats in one millisecond apart. If the time is the time of receipt, the ID covers the
// request and the event's position in it instead, so equal events stay
// distinct; the row key holds the time beside the ID. The order of fields,
// spaces, escapes, nulls and unknown fields of the JSON do not matter.
func (e *Event) ID() string {
	var space [512]byte // on the stack; enough for a typical event
	sum := sha256.Sum256(e.appendCanonical(space[:0]))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

func (e *Event) appendCanonical(b []byte) []byte {
	version := byte(canonicalVersion)
	if e.details != nil && e.details.eventID != "" {
		version = withEventID
	}
	b = append(b, version)
	b = appendString(b, string(e.Type))
	b = appendString(b, e.Subtype)
	b = appendString(b, e.Name)
	b = appendString(b, e.Index)
	b = appendString(b, e.UserToken)
	b = appendString(b, e.AuthenticatedUserToken)
	b = appendString(b, e.QueryID)
	if e.Received {
		b = append(b, timeReceived)
		b = binary.BigEndian.AppendUint64(b, e.request)
		b = binary.BigEndian.AppendUint64(b, uint64(e.ordinal))
	} else {
		b = append(b, timeSent)
		b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	}
	b = binary.AppendUvarint(b, uint64(len(e.ObjectIDs)))
	for _, id := range e.ObjectIDs {
		b = appendString(b, id)
	}
	b = binary.AppendUvarint(b, uint64(len(e.Filters)))
	for _, f := range e.Filters {
		b = appendString(b, f.Facet)
		b = appendString(b, f.Value)
	}
	if e.details != nil {
		b = e.details.appendCanonical(b)
	}
	return b
}

func (d *details) appendCanonical(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(d.positions)))
	for _, position := range d.positions {
		b = binary.BigEndian.AppendUint64(b, uint64(position))
	}
	b = binary.AppendUvarint(b, uint64(len(d.objectData)))
	for _, o := range d.objectData {
		b = appendString(b, o.queryID)
		b = appendScalar(b, o.price)
		b = appendScalar(b, o.discount)
		b = appendScalar(b, o.quantity)
	}
	b = appendScalar(b, d.value)
	b = appendString(b, d.currency)
	b = appendString(b, d.agentID)
	if d.eventID != "" {
		b = appendString(b, d.eventID)
	}
	return b
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendScalar(b []byte, s scalar) []byte {
	b = append(b, byte(s.kind))
	switch s.kind {
	case scalarNumber:
		number := s.number
		if number == 0 {
			number = 0 // -0 is written like 0
		}
		return binary.BigEndian.AppendUint64(b, math.Float64bits(number))
	case scalarString:
		return appendString(b, s.text)
	default:
		return b
	}
}
