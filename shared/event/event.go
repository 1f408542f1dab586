// Package event holds what a user did: the event itself, the filters it may
// name, how both are read from JSON, and the rules an event is accepted under.
//
// It is separate because everything else speaks of events: ingestion decodes
// them, the log keeps them under their ID, and scoring adds them up. All three
// must agree on what one event is, so the rules and the ID stand here, with no
// cloud library and no HTTP beside them. The package stores nothing: an event
// lives in the log, one row each, keyed by app, user token, time and ID.
package event

import "time"

// Limits of one request and of one event. Those of the request, the ages and
// the counts are the Insights API's own, which its clients batch by; the
// lengths in bytes are ours, since the API publishes none, and keep a row key
// and a column name well within what the log can hold.
const (
	// MaxBatch is the most events one request may carry.
	MaxBatch = 1000
	// MaxBody is the most bytes of JSON one request may carry.
	MaxBody = 2_000_000
	// MaxEventAge is how far before receipt a sent timestamp may lie.
	MaxEventAge = 30 * 24 * time.Hour

	maxTargets  = 20   // objectIDs, or filters, of one event
	maxID       = 512  // bytes of an objectID or an index name
	maxFilter   = 2048 // bytes of a filter, decoded
	maxName     = 64   // characters of an event name
	maxToken    = 129  // characters of a user token: the schema's bound, one above its message's
	maxQueryID  = 128  // characters of a query ID
	maxValueLen = 16   // characters of a value sent as a string
)

// Type says what kind of act an event records.
type Type string

// The types of events. An InstantSearch event is telemetry of a search
// interface: it is accepted like any other but says nothing about what the
// user likes, and callers drop it.
const (
	View          Type = "view"
	Click         Type = "click"
	Conversion    Type = "conversion"
	InstantSearch Type = "instantsearch"
)

// Event is one accepted act of a user. Its strings share memory with one
// another and Raw shares it with the body it came from: whoever keeps a single
// string for long clones it. Fields must not be changed before ID is taken.
type Event struct {
	Type                   Type
	Subtype                string // "addToCart", "purchase" or none; conversions only
	Name                   string
	Index                  string // empty for InstantSearch only
	UserToken              string
	AuthenticatedUserToken string // empty where none was sent
	QueryID                string // empty where none was sent

	// Time is in milliseconds since the epoch: the client's timestamp, or the
	// time of receipt where it sent none or a later one.
	Time int64
	// Received says that Time is the time of receipt.
	Received bool

	ObjectIDs []string // distinct, in order of first mention
	Filters   []Filter // distinct, in order of first mention
	Raw       []byte   // the event's JSON as sent; valid UTF-8

	ordinal int      // position in its request
	request uint64   // which request
	details *details // what only the ID reads; nil where nothing of it was sent
}

// details is what an event says that neither scoring nor resolving asks for.
type details struct {
	positions  []int64
	objectData []objectData
	value      scalar
	currency   string
	agentID    string
}

// objectData is what a purchase or an addition to a cart says of one object.
type objectData struct {
	queryID  string
	price    scalar
	discount scalar
	quantity scalar
}

// scalar is a JSON number or string, or neither: clients send prices as both
// 9.5 and "9.50 EUR".
type scalar struct {
	kind   scalarKind
	text   string  // of a string
	number float64 // of a number
}

type scalarKind byte

// The kinds of a scalar. They are hashed into IDs and never change.
const (
	scalarAbsent scalarKind = 0
	scalarNumber scalarKind = 1
	scalarString scalarKind = 2
)

// tokenChars marks the bytes a user token may hold.
var tokenChars = func() (set [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=/+-") {
		set[c] = true
	}
	return set
}()

// ValidUserToken says whether s has the form of a user token: 1 to 129 of
// [a-zA-Z0-9_=/+-]. Such a token may stand in a row key as it is.
func ValidUserToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !tokenChars[s[i]] {
			return false
		}
	}
	return true
}
