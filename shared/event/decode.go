package event

import (
	"io"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Rules are what an event is judged by besides its own content.
type Rules struct {
	// Now is the time of receipt: the time of events that send none or a later
	// one. It must be set.
	Now time.Time
	// MaxAge is how far before Now a timestamp may lie; 0 means any distance.
	MaxAge time.Duration
	// Index is the index of events that name none; if empty, naming one is
	// required.
	Index string
	// Ordinal is the position in its request of the first event decoded. It
	// tells apart equal events without a timestamp.
	Ordinal int
	// Request tells apart requests that were received in the same millisecond: a
	// random number, kept with the request. It goes into the ID of events whose
	// time is that of receipt.
	Request uint64
	// AnySize lifts the limit of MaxBody: the body was accepted before.
	AnySize bool
}

// DecodeBatch reads {"events":[...]}, 1 to 1,000 of them, all or none. Any
// error is a *Refusal: of the body as a whole where it is too large, no JSON,
// no batch or too many, and otherwise of its first bad event. The events' Raw
// shares the body's memory.
func DecodeBatch(body []byte, r Rules) ([]Event, error) {
	return decode(body, r, (*parser).batch)
}

// Decode reads one event. Any error is a *Refusal. The event's Raw shares
// raw's memory.
func Decode(raw []byte, r Rules) (Event, error) {
	events, err := decode(raw, r, func(p *parser) error { return p.event(0) })
	if err != nil {
		return Event{}, err
	}
	return events[0], nil
}

// decode reads one JSON value by way of read and refuses anything after it.
func decode(body []byte, r Rules, read func(*parser) error) ([]Event, error) {
	if len(body) > MaxBody && !r.AnySize {
		return nil, &Refusal{Status: statusTooLarge, Message: msgTooLarge, Position: -1}
	}
	if !utf8.Valid(body) {
		return nil, badRequest("invalid UTF-8", invalidUTF8(body))
	}
	p := newParser(body, r)
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

// batch reads the envelope. Where "events" stands twice the last one counts.
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
		return p.dec.SkipValue()
	}
	p.events, p.refused = p.events[:0], nil
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindBeginArray:
	case jsontext.KindNull:
		p.refused = refuseBody(msgNoEvents)
		return p.dec.SkipValue()
	default:
		p.refused = refuseBody(typeMessage("array", kind))
		return p.dec.SkipValue()
	}
	count := 0
	err := p.array(func(p *parser) error {
		if count == MaxBatch {
			return refuseBody(msgTooManyEvents) // at once: the rest is not read
		}
		count++
		return p.event(count - 1)
	})
	if count == 0 {
		p.refused = refuseBody(msgNoEvents)
	}
	return err
}

// event reads one event and judges it. After the first bad one the rest are
// only skipped over: the JSON may still break off or hold too many.
func (p *parser) event(position int) error {
	if p.refused != nil {
		return p.dec.SkipValue()
	}
	if kind := p.dec.PeekKind(); kind != jsontext.KindBeginObject {
		raw, err := p.dec.ReadValue()
		p.refuse(typeMessage("object", kind), position, raw)
		return err
	}
	p.draft = draft{}
	p.draft.ordinal, p.draft.request = p.rules.Ordinal+position, p.rules.Request
	start, err := p.objectAt((*parser).eventField)
	if err != nil {
		return err
	}
	end := p.dec.InputOffset()
	p.draft.Raw = p.body[start:end:end]
	if message := p.draft.fault(&p.rules); message != "" {
		p.refuse(message, position, p.draft.Raw)
		return nil
	}
	p.events = append(p.events, p.draft.Event)
	return nil
}

func (p *parser) refuse(message string, position int, raw []byte) {
	p.refused = &Refusal{Status: statusUnprocessable, Message: message, Position: position, Event: raw}
}
