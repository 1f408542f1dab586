// Package event defines user events (view, click, conversion) and the filters
// they name. It decodes both from JSON, validates them, and computes event IDs.
//
// Ingestion decodes events, the log stores them under their IDs, and scoring
// adds them up. All three must agree on what one event is, so the rules and the
// ID are defined here. The package stores nothing: each event is a row of the
// log, keyed by app, user token, time and ID.
package event

import "time"

// Limits of one request and of one event. The Insights API sets the limits of
// the request, the age and the counts; its clients size their batches by them.
// The API publishes no lengths in bytes: ours keep row keys and column names
// well within Bigtable's limits.
const (
	// MaxBatch is the largest number of events in one request.
	MaxBatch = 1000
	// MaxBody is the largest body of one request, in bytes of JSON.
	MaxBody = 2_000_000
	// MaxEventAge is how long before receipt a client's timestamp may lie.
	MaxEventAge = 30 * 24 * time.Hour
	// MaxAhead is how long after receipt a client's timestamp may lie. A device whose
	// clock is that much ahead sends the same event again when it retries.
	MaxAhead = 5 * time.Minute

	maxTargets  = 20   // objectIDs, or filters, of one event
	maxID       = 512  // bytes of an objectID or an index name
	maxFilter   = 2048 // bytes of a filter, decoded
	maxName     = 64   // characters of an event name
	maxToken    = 129  // characters of a user token: Algolia's schema allows 129, its message says 128
	maxQueryID  = 128  // characters of a query ID
	maxValueLen = 16   // characters of a price sent as a string
	maxEventID  = 128  // bytes of an id of the client's
	maxDenied   = 64   // names of the consent of an event
)

// Type is the kind of action that an event records.
type Type string

// The types of events. An InstantSearch event is telemetry of a search
// interface. The engine accepts it because clients send it, and drops it: it
// does not show what the user likes.
const (
	View          Type = "view"
	Click         Type = "click"
	Conversion    Type = "conversion"
	InstantSearch Type = "instantsearch"
)

// Event is one accepted action of a user. Its strings share one copy of the
// body, and Raw shares the memory of the body itself: a caller that keeps a
// single string should clone it. Fields must not change before the last call of
// ID.
type Event struct {
	Type                   Type
	Subtype                string // "addToCart", "purchase" or none; conversions only
	Name                   string
	Index                  string // empty for InstantSearch only
	UserToken              string
	AuthenticatedUserToken string // empty if the client sent none
	QueryID                string // empty if the client sent none

	// Time is the client's timestamp in milliseconds since the epoch. It is the
	// time of receipt if the client sent no timestamp or one too far ahead of it.
	Time int64
	// Received reports that Time is the time of receipt.
	Received bool

	// Call is the ID of the call that the event is part of, if the engine remembers the time
	// of the call (see CallID). A decoded event has none.
	Call string

	// Denied are the names of the consent that the event carries which it denies.
	Denied []string

	ObjectIDs []string // distinct, in order of first mention
	Filters   []Filter // distinct, in order of first mention
	Raw       []byte   // the event's JSON as sent, but for Rules.History; valid UTF-8

	ordinal int      // position in its request
	request uint64   // random number of its request
	details *details // fields that ID, Revenue and attribution read; nil if the client sent none of them
}

// details holds the fields of an event that neither scoring nor the catalog
// uses.
type details struct {
	positions  []int64
	objectData []objectData
	value      scalar
	currency   string
	agentID    string
	eventID    string // the client's own id
}

// objectData describes one object of a purchase or of an addition to a cart.
type objectData struct {
	queryID  string
	price    scalar
	discount scalar
	quantity scalar
}

// scalar is a JSON number, a string, or absent. Clients send prices as 9.5 and
// as "9.50 EUR".
type scalar struct {
	kind   scalarKind
	text   string  // of a string
	number float64 // of a number
}

type scalarKind byte

// The kinds of a scalar. They are hashed into IDs, so they must not change.
const (
	scalarAbsent scalarKind = 0
	scalarNumber scalarKind = 1
	scalarString scalarKind = 2
)
