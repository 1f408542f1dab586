// Package bus carries accepted events from ingest to process over Pub/Sub.
//
// One message holds one request: its body as the client sent it, when it was
// received, and what the catalog said of its objects at that moment. So every
// delivery of a message, however often and however late, decodes to the same
// events with the same ids, times and filters, and applying it again changes
// nothing. A message of another kind holds events that are in the log already,
// with what the catalog said of their objects later (see reenriched.go). Messages
// are JSON, legible in a dead-letter queue.
package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// MaxMessage is how large a message may be: Pub/Sub takes 10 MB, and a push
// wraps it in base64, which must stay below what a function takes, 32 MB.
const MaxMessage = 9 << 20

// Attributes of a message.
const (
	AttrApp    = "app"    // the app id, for whoever looks at a queue
	AttrReason = "reason" // of a dead letter: why it could not be applied
)

// Kind is what a message holds.
type Kind string

// The kinds of messages. Accepted ones do not say theirs, and those of older
// versions are all accepted.
const (
	Accepted   Kind = ""
	Reenriched Kind = "reenriched"
)

// Message is one accepted request, or a part of one that was too large.
type Message struct {
	Kind       Kind   `json:"kind,omitempty"`
	App        string `json:"app"`
	ReceivedAt int64  `json:"receivedAt"` // ms; of a reenriched message when it was made
	// Request is a random number: it tells requests of one millisecond apart in
	// the ids of events that carry no time of their own.
	Request uint64 `json:"request"`
	// Ordinal is the position of the first event in its request: it is part of
	// the id of events that carry no time of their own.
	Ordinal int `json:"ordinal,omitempty"`
	// Resolved says that Objects was read from the catalog. Otherwise process
	// resolves the message and publishes it anew before anything else.
	Resolved bool    `json:"resolved"`
	Objects  Objects `json:"objects,omitempty"`
	// Body is {"events":[...]}, as it was sent; of a reenriched message it is what
	// Logged reads.
	Body []byte `json:"-"`
}

// Objects are the filters of the objects that events name, by index and object
// id. An object that the catalog does not know is absent.
type Objects map[string]map[string][]Filter

// Filter is [facet, value].
type Filter [2]string

// Encode is the message as it travels.
func (m Message) Encode() ([]byte, error) {
	head, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(append(head, '\n'), m.Body...), nil
}

// DecodeMessage reads a message. An error means that no delivery of it will
// ever decode. The message's body aliases data.
func DecodeMessage(data []byte) (Message, error) {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return Message{}, errors.New("decode message: want a line of JSON, a newline and a body")
	}
	m := Message{Body: body}
	if err := json.Unmarshal(head, &m); err != nil {
		return Message{}, fmt.Errorf("decode message: %w", err)
	}
	if m.App == "" || m.ReceivedAt <= 0 {
		return Message{}, errors.New("decode message: app and receivedAt must be there")
	}
	if m.Kind != Accepted && m.Kind != Reenriched {
		return Message{}, fmt.Errorf("decode message: kind %q is not one this version knows; deploy the newer version and replay it", m.Kind)
	}
	return m, nil
}

// Events decodes the events of an accepted message. They were validated when they
// were received; their age counts no more.
func (m Message) Events() ([]event.Event, error) {
	events, err := event.DecodeBatch(m.Body, event.Rules{Now: time.UnixMilli(m.ReceivedAt), Request: m.Request, Ordinal: m.Ordinal, AnySize: true})
	if err != nil {
		return nil, fmt.Errorf("decode events of message: %w", err)
	}
	return events, nil
}

// parts are encoded messages that together say what m says, each of at most
// limit bytes. Events keep their ids: each part knows the position of its first
// event.
func (m Message) parts(limit int) ([][]byte, error) {
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if len(data) <= limit {
		return [][]byte{data}, nil
	}
	if m.Kind == Reenriched {
		return m.loggedParts(len(data), limit)
	}
	events, err := m.Events()
	if err != nil {
		return nil, err
	}
	if len(events) < 2 {
		return nil, fmt.Errorf("one event with its filters has %d bytes, more than a message holds", len(data))
	}
	half := len(events) / 2
	first, err := m.part(events[:half], 0).parts(limit)
	if err != nil {
		return nil, err
	}
	second, err := m.part(events[half:], half).parts(limit)
	return append(first, second...), err
}

// part is a message of some of the events, which begin at a position of m.
func (m Message) part(events []event.Event, offset int) Message {
	p := Message{App: m.App, ReceivedAt: m.ReceivedAt, Request: m.Request, Ordinal: m.Ordinal + offset, Resolved: m.Resolved, Objects: Objects{}}
	raw := make([][]byte, len(events))
	for i, e := range events {
		raw[i] = e.Raw
		for _, id := range e.ObjectIDs {
			if filters, known := m.Objects[e.Index][id]; known {
				p.Objects.Put(e.Index, id, filters)
			}
		}
	}
	p.Body = append(append([]byte(`{"events":[`), bytes.Join(raw, []byte(","))...), `]}`...)
	return p
}

// Put sets the filters of an object.
func (o Objects) Put(index, id string, filters []Filter) {
	if o[index] == nil {
		o[index] = map[string][]Filter{}
	}
	o[index][id] = filters
}
