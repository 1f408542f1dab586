package event

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Rules are the inputs of validation besides the event itself.
type Rules struct {
	// Now is the time of receipt. Events without a timestamp, or with one later than
	// Now + Ahead, get it as their time. It must be set.
	Now time.Time
	// Ahead is how long after Now a timestamp may lie.
	Ahead time.Duration
	// MaxAge is how long before Now a timestamp may lie; 0 means no limit.
	MaxAge time.Duration
	// History says that the events are those of a file, not of a client of the
	// Insights API: a timestamp has any of the forms of ParseTime, as a string or a
	// number, and one that cannot be read or is later than Now + Ahead is refused.
	// The events' Raw then have it in ms. A refusal of a value for its type names the
	// field in its message, too.
	History bool
	// Index is the index of events that do not name one. If it is empty, events
	// must name one.
	Index string
	// Ordinal is the position in its request of the first event decoded. It
	// distinguishes equal events without a timestamp.
	Ordinal int
	// Request is a random number, kept with the request. It distinguishes
	// requests received in the same millisecond and is part of the ID of events
	// whose time is the time of receipt.
	Request uint64
	// AnySize lifts the limit of MaxBody, for a body that was accepted before.
	AnySize bool
}

// DecodeBatch decodes {"events":[...]} with 1 to 1,000 events, all or none.
// Every error is a *Refusal. It refuses the body as a whole if it is too large,
// is not JSON, is not a batch or holds too many events; otherwise it refuses
// the first bad event. The events' Raw and strings share the body's memory: the
// body must not be modified.
func DecodeBatch(body []byte, r Rules) ([]Event, error) {
	return decode(body, r, min(len(body)/typicalEvent+1, MaxBatch), (*parser).batch)
}

// Decode decodes one event. Every error is a *Refusal. The event's Raw and strings
// share raw's memory: raw must not be modified.
func Decode(raw []byte, r Rules) (Event, error) {
	events, err := decode(raw, r, 1, func(p *parser) error { return p.event(0) })
	if err != nil {
		return Event{}, err
	}
	return events[0], nil
}

// decode reads one JSON value of about so many events with read and refuses any data behind it.
func decode(body []byte, r Rules, expected int, read func(*parser) error) ([]Event, error) {
	if len(body) > MaxBody && !r.AnySize {
		return nil, &Refusal{Kind: fault.TooLarge, Message: msgTooLarge, Position: -1}
	}
	if reason := fault.NotUTF8(body); reason != "" {
		refusal := badRequest("invalid UTF-8", invalidUTF8(body))
		refusal.Message += ": " + reason
		return nil, refusal
	}
	p := newParser(body, r, expected)
	defer p.close()
	if err := read(p); err != nil {
		return nil, asRefusal(err, len(body))
	}
	if _, err := p.dec.ReadToken(); err == nil {
		return nil, badRequest("more than one JSON value", p.dec.InputOffset())
	} else if err != io.EOF {
		return nil, asRefusal(err, len(body))
	}
	if p.refused != nil {
		return nil, p.refused
	}
	return p.events, nil
}

// batch reads the envelope. If "events" occurs twice, the last one counts.
func (p *parser) batch() error {
	switch p.dec.PeekKind() {
	case jsontext.KindBeginObject:
		p.refused = refuseBody(msgNoEvents)
		return p.object((*parser).batchField)
	case jsontext.KindBeginArray:
		p.refused = refuseBody(msgArrayBody)
	default:
		p.refused = refuseBody(msgPayload)
	}
	return p.dec.SkipValue()
}

func (p *parser) batchField(name string) error {
	if name != "events" {
		if name == "eventType" && p.refused != nil && p.refused.Message == msgNoEvents {
			p.refused = refuseBody(msgUnwrapped)
		}
		return p.dec.SkipValue()
	}
	p.events, p.refused = p.events[:0], nil
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindBeginArray:
	case jsontext.KindNull:
		p.refused = refuseBody(msgNoEvents)
		return p.dec.SkipValue()
	default:
		p.refused = refuseBody(typeMessage("events", "array", kind))
		p.refused.Field = "events"
		return p.dec.SkipValue()
	}
	count := 0
	err := p.array(func(p *parser) error {
		if count == MaxBatch {
			return refuseBody(msgTooManyEvents) // without reading the rest
		}
		count++
		return p.event(count - 1)
	})
	if count == 0 {
		p.refused = refuseBody(msgNoEvents)
	}
	return err
}

// event reads and validates one event. After the first bad one it only skips
// the rest, to see whether the JSON is complete and the batch not too large.
func (p *parser) event(position int) error {
	if p.refused != nil {
		return p.dec.SkipValue()
	}
	if kind := p.dec.PeekKind(); kind != jsontext.KindBeginObject {
		raw, err := p.dec.ReadValue()
		p.refuse(typeMessage("events", "object", kind), "events", position, raw)
		return err
	}
	p.draft, p.times = draft{}, p.times[:0]
	p.draft.ordinal, p.draft.request = p.rules.Ordinal+position, p.rules.Request
	start, err := p.objectAt((*parser).eventField)
	if err != nil {
		return err
	}
	end := p.dec.InputOffset()
	p.draft.Raw = p.body[start:end:end]
	if message := p.draft.fault(&p.rules); message != "" {
		p.refuse(message, p.draft.wrong, position, p.draft.Raw)
		return nil
	}
	if p.rules.History {
		p.draft.Raw = p.inMillis(int(start), int(end))
	}
	p.events = append(p.events, p.draft.Event)
	return nil
}

// inMillis returns the JSON of the event that lies at a place of the body, with
// its timestamp in ms, so that it is one as the Insights API takes it.
func (p *parser) inMillis(start, end int) []byte {
	want := append(make([]byte, 0, 20), "null"...)
	if !p.draft.Received {
		want = strconv.AppendInt(want[:0], p.draft.Time, 10)
	}
	same := func(at [2]int) bool { return bytes.Equal(p.body[at[0]:at[1]], want) }
	if len(p.times) == 0 || len(p.times) == 1 && same(p.times[0]) {
		return p.draft.Raw
	}
	var raw []byte
	for _, at := range p.times { // the names of an object may repeat
		raw = append(append(raw, p.body[start:at[0]]...), want...)
		start = at[1]
	}
	return append(raw, p.body[start:end]...)
}

func (p *parser) refuse(message, field string, position int, raw []byte) {
	p.refused = &Refusal{Kind: fault.Invalid, Message: message, Field: field, Position: position, Event: raw}
}
