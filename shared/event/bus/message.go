// Package bus holds the messages that carry accepted events from ingest to process.
// Package bus/pubsub publishes them.
//
// A message holds one request: its body as the client sent it, the time of
// receipt, and the filters of its objects at that time. Every delivery of a message
// therefore decodes to the same events with the same ids, times and filters, and
// applying it twice changes nothing. An unresolved message holds no filters: process
// reads them at each delivery. A reenriched message instead holds events that the
// log already has, with the filters that the catalog has for their objects now
// (see reenriched.go), and one of sign-ins holds no events (see signins.go). Messages are
// lines of JSON, so a person can read a dead letter, and the archive is a file of lines.
// functions/docs/reference/messages.md describes them.
package bus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// messageVersion is the version of the format that Encode writes. Versions before 1 wrote none,
// and the line breaks of a client's JSON.
const messageVersion = 1

// MaxMessage is the largest size of a message, in bytes. Pub/Sub accepts 10 MB. A
// push holds the message in base64, and a function accepts a body of 32 MB.
const MaxMessage = 9 << 20

// Names of the topics and their subscriptions, in a deployment (see
// terraform/functions.json) and in the local stack.
const (
	EventsTopic            = "events"
	EventsSubscription     = "events-process"
	SlowTopic              = "events-slow"
	SlowSubscription       = "events-slow-process"
	DeadLetterTopic        = "events-dead-letter"
	DeadLetterSubscription = "events-dead-letter"
	// WarehouseTopic has rows of events for analysts, where there is a warehouse.
	WarehouseTopic = "warehouse"
)

// Attributes of a message.
const (
	AttrApp    = "app"    // the app id, for an operator who looks at a queue
	AttrLane   = "lane"   // SlowLane, or missing
	AttrRegion = "region" // in which the users of the message live, if each user of the app has a region
	AttrReason = "reason" // of a dead letter: why it could not be applied
	// AttrPublished is when Pub/Sub first took a message that was published again
	// unchanged (ms): a dead letter, and its replay.
	AttrPublished = "publishedAt"
	// AttrReturns is how often process has published the message again because it may have
	// ended processes. The message keeps it as a dead letter, and when that is replayed.
	AttrReturns = "returns"
	// AttrBuried is the id that a message had when it became a dead letter for the first time.
	// Its replay has it, too.
	AttrBuried = "buriedAs"
)

// Kind is what a message holds.
type Kind string

// The kinds of messages. Accepted ones do not say theirs, and those of older
// versions are all accepted.
const (
	Accepted   Kind = ""
	Reenriched Kind = "reenriched"
	SignedIn   Kind = "signedIn"
)

// Evidence is how far the events of a message may say that the person of their
// authenticatedUserToken has used their userToken.
type Evidence string

// The strengths of evidence. NoEvidence is that of events without an authenticatedUserToken. Weak
// evidence came with a key that stands in web pages, where anybody can read it.
const (
	NoEvidence     Evidence = ""
	WeakEvidence   Evidence = "weak"
	StrongEvidence Evidence = "strong"
)

// Lane is the way of a message to process.
type Lane string

// The lanes. The messages of an app that is over its limit take the slow one, so
// that those of other apps overtake them.
const (
	FastLane Lane = ""
	SlowLane Lane = "slow"
)

// Message is one accepted request, or a part of one that was too large (see
// parts.go).
type Message struct {
	Kind Kind   `json:"kind,omitempty"`
	App  string `json:"app"`
	// Lane is where the message was published. Its parts take the same one.
	Lane Lane `json:"lane,omitempty"`
	// Region is that to whose topics the message goes, if each user of the app has a region of their own. Empty: to
	// those of the app's region. Its parts go there, too.
	Region     string `json:"region,omitempty"`
	ReceivedAt int64  `json:"receivedAt"` // ms; of a reenriched message when it was made
	// Ahead is how long (ms) after ReceivedAt the timestamps of events may lie.
	Ahead int64 `json:"ahead,omitempty"`
	// PublishedAt is when Pub/Sub first took the events (ms). Only a message whose
	// events were published again holds it; Push.Decode sets it in all others.
	PublishedAt int64 `json:"publishedAt,omitempty"`
	// Request is a random number. It is part of the ids of events without a time of
	// their own, and distinguishes requests of the same millisecond.
	Request uint64 `json:"request"`
	// Ordinal is the position of the first event in its request. It is part of the
	// ids of events without a time of their own.
	Ordinal int `json:"ordinal,omitempty"`
	// Resolved says that Objects was read from the catalog. If it is false, process
	// reads the objects: ingest could not, or they have too many filters.
	Resolved bool `json:"resolved"`
	// Calls says that the events are calls of an SDK with a messageId, of which other
	// deliveries may have other times: process takes that of the first.
	Calls bool `json:"calls,omitempty"`
	// Evidence is how far the key of the request may say who has signed in under a user token.
	Evidence Evidence `json:"evidence,omitempty"`
	// Key is the ID of that key. A message without evidence has none.
	Key     string  `json:"key,omitempty"`
	Objects Objects `json:"objects,omitempty"`
	Bands   Bands   `json:"numericBands,omitempty"`
	// Body is {"events":[...]} as the client sent it, but for line breaks. In a
	// reenriched message it is what Logged decodes, in one of sign-ins what SignIns does.
	Body []byte `json:"-"`
}

// Objects are the filters of the objects that events name, by index and object
// id. An object that the catalog does not hold is missing.
type Objects map[string]map[string][]Filter

// Bands are the versions of the numeric bands under which filters were derived, by
// index. Missing: 0, from before the first bands of the index.
type Bands map[string]int64

// Resolution is what a catalog knows of the objects of events.
type Resolution struct {
	Objects Objects
	Bands   Bands
}

// Resolution returns what the catalog knew when the message was resolved.
func (m Message) Resolution() Resolution { return Resolution{m.Objects, m.Bands} }

// Filter is [facet, value].
type Filter [2]string

// head is the first line of a message.
type head struct {
	Version int `json:"version"`
	Lines   int `json:"lines"` // of the body
	Message
}

// Encode returns the message as it is published.
func (m Message) Encode() ([]byte, error) {
	lines := 1
	if m.Kind == Reenriched {
		lines = bytes.Count(m.Body, []byte("\n"))
	} else {
		m.Body = oneLine(m.Body)
	}
	head, err := json.Marshal(head{messageVersion, lines, m})
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(append(head, '\n'), m.Body...), nil
}

// oneLine returns valid JSON without line breaks. These can only stand between its tokens,
// so a space says the same, and is as long.
func oneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\n"), []byte(" "))
}

// DecodeMessage decodes a message. An error is permanent: no delivery of the
// message can be decoded. The message's body shares data's memory.
func DecodeMessage(data []byte) (Message, error) {
	line, body, ok := bytes.Cut(data, []byte("\n"))
	if !ok {
		return Message{}, errors.New("decode message: want a line of JSON, a newline and a body")
	}
	m, _, err := DecodeHead(line)
	m.Body = body
	return m, err
}

// DecodeHead decodes the first line of a message. It returns the message without its
// body, and how many lines the body has: 0 for a message of a version before 1, which
// did not say it.
func DecodeHead(line []byte) (Message, int, error) {
	var h head
	if err := json.Unmarshal(line, &h); err != nil {
		return Message{}, 0, fmt.Errorf("decode message: %w", err)
	}
	if h.Version > messageVersion {
		return Message{}, 0, fmt.Errorf("decode message: version %d of the format is newer than %d, which this "+
			"version knows; deploy the newer version and replay it", h.Version, messageVersion)
	}
	if h.App == "" || h.ReceivedAt <= 0 {
		return Message{}, 0, errors.New("decode message: app and receivedAt must be there")
	}
	if h.Kind != Accepted && h.Kind != Reenriched && h.Kind != SignedIn {
		return Message{}, 0, fmt.Errorf("decode message: kind %q is not one this version knows; deploy the newer "+
			"version and replay it", h.Kind)
	}
	return h.Message, h.Lines, nil
}

// Events decodes the events of an accepted message. Ingest validated them at
// receipt, so their age is not checked again.
func (m Message) Events() ([]event.Event, error) {
	events, err := event.DecodeBatch(m.Body, event.Rules{
		Now: time.UnixMilli(m.ReceivedAt), Ahead: time.Duration(m.Ahead) * time.Millisecond,
		Request: m.Request, Ordinal: m.Ordinal, AnySize: true,
	})
	if err != nil {
		return nil, fmt.Errorf("decode events of message: %w", err)
	}
	return events, nil
}

// maxClock is how far a publish may lie before ReceivedAt. If it lies further before,
// Pub/Sub has another idea of time, as the clock of a test does not reach it.
const maxClock = 5 * time.Minute

// Receipt returns when the events of the message were received (ms): by the clock of
// ingest or of Pub/Sub, whichever says the earlier time. A deletion compares this time
// with its own clock, and two clocks that are ahead are less likely than one.
func (m Message) Receipt() int64 {
	if p := m.PublishedAt; p != 0 && p >= m.ReceivedAt-maxClock.Milliseconds() {
		return min(m.ReceivedAt, p)
	}
	return m.ReceivedAt
}

// Put sets the filters of an object.
func (o Objects) Put(index, id string, filters []Filter) {
	if o[index] == nil {
		o[index] = map[string][]Filter{}
	}
	o[index][id] = filters
}
