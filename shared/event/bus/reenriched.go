package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// Logged is an event as the log holds it.
type Logged struct {
	User string
	Time int64 // ms
	// ID is the id in the event's row. The event alone may not determine it: the id
	// of an event without a time of its own comes from its request.
	ID         string
	ReceivedAt int64 // ms
	Event      event.Event
}

// frame is the line before an event in the body of a reenriched message: the
// event's place in the log, what its JSON does not say, and the size of its JSON.
// The JSON follows as the client sent it. Inside of other JSON it could exceed the
// depth that is accepted.
type frame struct {
	User       string `json:"user"`
	Time       int64  `json:"time"`
	ID         string `json:"id"`
	ReceivedAt int64  `json:"receivedAt"`
	Index      string `json:"index"`
	Size       int    `json:"size"`
}

// NewReenriched returns a message of events of the log, with the filters of their
// objects.
func NewReenriched(app string, at time.Time, events []Logged, known Resolution) (Message, error) {
	m := Message{Kind: Reenriched, App: app, ReceivedAt: at.UnixMilli(), Resolved: true, Bands: known.Bands}
	var body bytes.Buffer
	for i := range events {
		l := &events[i]
		head, err := json.Marshal(frame{l.User, l.Time, l.ID, l.ReceivedAt, l.Event.Index, len(l.Event.Raw)})
		if err != nil {
			return Message{}, fmt.Errorf("encode reenriched event: %w", err)
		}
		body.Write(append(head, '\n'))
		body.Write(oneLine(l.Event.Raw))
		body.WriteByte('\n')
		m.copyObjects(&l.Event, known.Objects)
	}
	m.Body = body.Bytes()
	return m, nil
}

// Logged decodes the events of a reenriched message. They share the body's memory.
func (m Message) Logged() ([]Logged, error) {
	var all []Logged
	for rest := m.Body; len(rest) > 0; {
		l, after, err := cutLogged(rest)
		if err != nil {
			return nil, fmt.Errorf("decode event %d of a reenriched message: %w", len(all)+1, err)
		}
		all, rest = append(all, l), after
	}
	if len(all) == 0 {
		return nil, errors.New("decode reenriched message: it holds no event")
	}
	return all, nil
}

// cutLogged decodes the first event of a body and returns the rest.
func cutLogged(body []byte) (l Logged, rest []byte, err error) {
	head, rest, _ := bytes.Cut(body, []byte("\n"))
	var f frame
	if err := json.Unmarshal(head, &f); err != nil {
		return l, nil, err
	}
	if f.Size < 0 || f.Size >= len(rest) || rest[f.Size] != '\n' {
		return l, nil, fmt.Errorf("want %d bytes of JSON and a newline", f.Size)
	}
	// A malformed token could name the row of another user.
	if !event.ValidUserToken(f.User) || f.Time < 0 || f.ID == "" || f.ReceivedAt <= 0 {
		return l, nil, errors.New("user, time, id and receivedAt must be there and well-formed")
	}
	e, err := event.Decode(rest[:f.Size:f.Size],
		event.Rules{Now: time.UnixMilli(f.ReceivedAt), Index: f.Index, AnySize: true})
	if err != nil {
		return l, nil, err
	}
	return Logged{f.User, f.Time, f.ID, f.ReceivedAt, e}, rest[f.Size+1:], nil
}
