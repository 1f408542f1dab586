package bus

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// TooLarge is the error of an event that does not fit into a message with its
// filters. Other events of its message may.
type TooLarge struct {
	Bytes int // of the message that holds the event alone
}

// Error says how large the event is.
func (t TooLarge) Error() string {
	return fmt.Sprintf("one event with its filters has %d bytes, more than a message holds", t.Bytes)
}

// Parts encodes m in messages of at most limit bytes: one if m fits, otherwise as
// few runs of consecutive events as fit. A part holds the objects that its own
// events name. Parts makes one part at a time, so that a caller which sends each
// holds one. Events keep their ids: each part holds the position of its first
// event. An error ends the parts.
func (m Message) Parts(limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		data, err := m.Encode()
		if err != nil || len(data) <= limit {
			yield(data, err)
			return
		}
		all, err := m.batch()
		if err != nil {
			yield(nil, err)
			return
		}
		for from := 0; from < all.n; {
			to := all.end(from, limit)
			part, err := all.part(from, to)
			if err == nil {
				data, err = part.Encode()
			}
			if err == nil && len(data) > limit {
				err = TooLarge{len(data)}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(data, nil) {
				return
			}
			from = to
		}
	}
}

// batch is the decoded events of a message, accepted or reenriched.
type batch struct {
	message Message
	n       int
	event   func(i int) *event.Event
	part    func(from, to int) (Message, error)
	sizes   map[string]map[string]int // of encoded objects, by index and object id
}

func (m Message) batch() (batch, error) {
	all := batch{message: m, sizes: map[string]map[string]int{}}
	if m.Kind == Reenriched {
		events, err := m.Logged()
		all.n, all.event = len(events), func(i int) *event.Event { return &events[i].Event }
		all.part = func(from, to int) (Message, error) { return m.LoggedPart(events[from:to]) }
		return all, err
	}
	events, err := m.Events()
	all.n, all.event = len(events), func(i int) *event.Event { return &events[i] }
	all.part = func(from, to int) (Message, error) { return m.Part(events[from:to], from), nil }
	return all, err
}

// partFrame bounds, in bytes, what an encoded part has besides its events and
// objects. eventFrame does so for an event: the frame of a reenriched one.
const (
	partFrame  = 1 << 10
	eventFrame = 1 << 10
)

// end returns the end of the longest part that begins with an event and is at most
// limit bytes long. A part has at least one event.
func (b *batch) end(from, limit int) int {
	size, named := partFrame, map[string]map[string]bool{}
	for i := from; i < b.n; i++ {
		e := b.event(i)
		size += len(e.Raw) + len(e.Index) + eventFrame
		for _, id := range e.ObjectIDs {
			filters, known := b.message.Objects[e.Index][id]
			if !known || named[e.Index][id] {
				continue
			}
			if named[e.Index] == nil {
				named[e.Index] = map[string]bool{}
				size += encodedSize(e.Index)
			}
			named[e.Index][id] = true
			size += b.objectSize(e.Index, id, filters)
		}
		if size > limit && i > from {
			return i
		}
	}
	return b.n
}

// objectSize returns the size of an encoded object.
func (b *batch) objectSize(index, id string, filters []Filter) int {
	if b.sizes[index] == nil {
		b.sizes[index] = map[string]int{}
	}
	size, known := b.sizes[index][id]
	if !known {
		size = encodedSize(id) + encodedSize(filters)
		b.sizes[index][id] = size
	}
	return size
}

// encodedSize returns the size of a value in JSON, with a comma and a colon.
func encodedSize(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return 0 // strings are never refused, and Encode would say so
	}
	return len(text) + 2
}

// Part returns a message of consecutive events of an accepted message. first is
// the position of the first of them in m.
func (m Message) Part(events []event.Event, first int) Message {
	p := Message{
		App: m.App, Lane: m.Lane, Region: m.Region, ReceivedAt: m.ReceivedAt, Ahead: m.Ahead, PublishedAt: m.PublishedAt,
		Request: m.Request, Ordinal: m.Ordinal + first, Resolved: m.Resolved, Calls: m.Calls,
		Evidence: m.Evidence, Key: m.Key, Bands: m.Bands,
	}
	for i := range events {
		p.copyObjects(&events[i], m.Objects)
	}
	p.Body = bodyOf(events)
	return p
}

// bodyOf returns the body of a message of events.
func bodyOf(events []event.Event) []byte {
	size := len(`{"events":[]}`)
	for i := range events {
		size += len(events[i].Raw) + len(",")
	}
	body := append(make([]byte, 0, size), `{"events":[`...)
	for i := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, events[i].Raw...)
	}
	return append(body, `]}`...)
}

// LoggedPart returns a message of some events of a reenriched message.
func (m Message) LoggedPart(events []Logged) (Message, error) {
	part, err := NewReenriched(m.App, time.UnixMilli(m.ReceivedAt), events, m.Resolution())
	part.Region = m.Region
	return part, err
}

// copyObjects gives m the known objects of an event.
func (m *Message) copyObjects(e *event.Event, objects Objects) {
	for _, id := range e.ObjectIDs {
		if filters, known := objects[e.Index][id]; known {
			if m.Objects == nil {
				m.Objects = Objects{}
			}
			m.Objects.Put(e.Index, id, filters)
		}
	}
}
