package api

import (
	"encoding/json"
	"slices"
	"time"
)

// The types of events.
const (
	EventView       = "view"
	EventClick      = "click"
	EventConversion = "conversion"
	// EventInstantSearch is telemetry of a search interface. The engine accepts
	// such events and keeps nothing of them.
	EventInstantSearch = "instantsearch"
)

// Event is one action of a user, as a client sends it. It names either
// ObjectIDs or Filters, never both. Fields that the engine does not know are
// ignored.
type Event struct {
	// EventType is one of EventView, EventClick, EventConversion and
	// EventInstantSearch. Required.
	EventType string `json:"eventType"`
	// EventSubtype refines a conversion: "addToCart" or "purchase".
	EventSubtype string `json:"eventSubtype,omitempty"`
	// EventName is what the event is called, 1 to MaxEventName visible ASCII
	// characters or spaces. Required. A strategy scores events by type and
	// name.
	EventName string `json:"eventName"`
	// Index is the catalog index of the objects. Required but for
	// EventInstantSearch, and in an import that names a default index.
	Index string `json:"index,omitempty"`
	// UserToken names the user, 1 to MaxUserToken of a-z, A-Z, 0-9 and _=/+-.
	// Required.
	UserToken string `json:"userToken"`
	// AuthenticatedUserToken names the user who is signed in, of the same form.
	// It is kept and does not move the event to another profile.
	AuthenticatedUserToken string `json:"authenticatedUserToken,omitempty"`
	// Timestamp is when the event happened, in milliseconds since the Unix
	// epoch. Without one, or with one more than 5 minutes after receipt, the event
	// gets the time of receipt. POST /1/events refuses an event that is more than MaxEventAge
	// old; imports take any age. An event with a timestamp counts once, however
	// often it is sent.
	Timestamp int64 `json:"timestamp,omitempty"`
	// ObjectIDs are the objects of the event, 1 to MaxEventTargets. Their
	// filters come from the catalog.
	ObjectIDs []string `json:"objectIDs,omitempty"`
	// Filters are what the event is about, 1 to MaxEventTargets, each a facet
	// and a value such as "brand:Apple". They are percent-decoded: write % as
	// %25.
	Filters []string `json:"filters,omitempty"`
	// QueryID is the search that led to the event, 32 lower-case hexadecimal
	// digits, or "message_" and up to 120 visible characters.
	QueryID string `json:"queryID,omitempty"`
	// Positions are where the objects stood in the results of QueryID, from 1,
	// one for each of ObjectIDs. Clicks only; required of a click with a
	// QueryID.
	Positions []int `json:"positions,omitempty"`
	// ObjectData has further data of each of ObjectIDs, in their order.
	ObjectData []ObjectData `json:"objectData,omitempty"`
	// Value is the worth of a conversion: a number, or a string of up to
	// MaxEventValue characters.
	Value any `json:"value,omitempty"`
	// Currency of Value and of prices: three letters, such as "EUR".
	Currency string `json:"currency,omitempty"`
	// EventID tells events that are otherwise equal apart, up to MaxEventID bytes: two
	// events with equal content and timestamp, but other ids, both count.
	EventID string `json:"eventId,omitempty"`
	// Consent says what this event may be used for: names with true or false, or "granted" or "denied". An event that
	// denies a purpose of the app which it serves, by its name or by one of its signals, is dropped. Other names do not
	// matter.
	Consent map[string]any `json:"consent,omitempty"`
	// AgentID names the program that sent an EventInstantSearch event. Other
	// events must not have it.
	AgentID string `json:"agentID,omitempty"`
}

// ObjectData is the data of a conversion about one object. The engine keeps it
// and does not score it.
type ObjectData struct {
	Price    any    `json:"price,omitempty"`    // number or string
	Discount any    `json:"discount,omitempty"` // number or string
	Quantity int    `json:"quantity,omitempty"` // 32 bits
	QueryID  string `json:"queryID,omitempty"`
}

// EventsRequest is the body of POST /1/events: 1 to MaxEvents events in at most
// MaxEventsBody bytes. They are accepted all or none. The answer is a [Message]
// with the text OK; profiles show the events within seconds.
type EventsRequest struct {
	Events []Event `json:"events"`
}

// CallsAnswer is the answer of POST /v1/batch and POST /v1/{call}, the one that SDKs of
// Segment and RudderStack expect. Calls that give no event do not change it: GET
// /1/events/refused counts them.
type CallsAnswer struct {
	Success bool `json:"success"` // always true
}

// ImportAnswer is the answer of POST /1/events/import, whose body is one event
// a line, at most MaxImportLines lines and MaxImportBody bytes. The query
// parameter index is the index of events that name none. Bad lines are refused
// one by one; accepted ones count in every read that begins after the answer.
type ImportAnswer struct {
	// Accepted counts the lines that were taken.
	Accepted int `json:"accepted"`
	// Received counts accepted events without a timestamp, or with one more than 5
	// minutes in the future. They get the time of the import: sent again, they count again.
	Received int `json:"received"`
	// Deleted counts accepted events that no profile counts, because their user
	// was deleted after they happened.
	Deleted int `json:"deleted"`
	// OptedOut counts accepted events that were dropped, because their user has opted out
	// of their type.
	OptedOut int `json:"optedOut"`
	// Withheld counts accepted events that were dropped, because they serve no purpose that their user grants.
	Withheld int `json:"withheld,omitempty"`
	// OutsideRetention counts accepted events that no profile counts, because
	// they are older than the retention of the app.
	OutsideRetention int `json:"outsideRetention"`
	// Present counts accepted events that the log had already. Only an import that keeps
	// receipts counts them.
	Present int `json:"present,omitempty"`
	// UserDeletions counts accepted lines of a dump that say that a user was deleted or
	// has opted out.
	UserDeletions int `json:"userDeletions,omitempty"`
	// UserConsents counts accepted lines of a dump that say what a user has said of purposes.
	UserConsents int `json:"userConsents,omitempty"`
	// UserLinks counts accepted lines of a dump that say how a token is linked, and LinksLeftOut the links of these
	// that were not restored, because they contradict links that the app has, or one of its limits.
	UserLinks    int `json:"userLinks,omitempty"`
	LinksLeftOut int `json:"linksLeftOut,omitempty"`
	// Reports counts accepted lines of a dump with a kept report of an experiment.
	Reports int `json:"reports,omitempty"`
	// UnknownObjects are the objects of accepted events that the catalog does not hold, by
	// index, of at most MaxUnknownIndexes. Their events get filters by a re-enrichment once
	// it does. Absent if it holds all.
	UnknownObjects []UnknownObjects `json:"unknownObjects,omitempty"`
	// Refused are the lines that were not taken, in their order.
	Refused []RefusedLine `json:"refused"`
}

// UnknownObjects says which objects of accepted events an index does not hold.
type UnknownObjects struct {
	Index string `json:"index"`
	// Events counts the events that name such an object.
	Events int `json:"events"`
	// ObjectIDs are the first of them, at most MaxUnknownObjects.
	ObjectIDs []string `json:"objectIDs"`
	More      bool     `json:"more,omitempty"` // there are others
	// Elsewhere is one of the first few ObjectIDs, and another index that holds it; nil if
	// none was found.
	Elsewhere *ObjectPlace `json:"elsewhere,omitempty"`
}

// ObjectPlace is an object in an index.
type ObjectPlace struct {
	ObjectID string `json:"objectID"`
	Index    string `json:"index"`
}

// Add adds the answer to a further request of the same import. The numbers of its lines stay as they are.
func (a *ImportAnswer) Add(further ImportAnswer) {
	a.AddCounts(further)
	a.Refused = append(a.Refused, further.Refused...)
}

// AddCounts is Add without the refused lines.
func (a *ImportAnswer) AddCounts(further ImportAnswer) {
	a.Accepted += further.Accepted
	a.Received += further.Received
	a.Deleted += further.Deleted
	a.OutsideRetention += further.OutsideRetention
	a.OptedOut += further.OptedOut
	a.Withheld += further.Withheld
	a.Present += further.Present
	a.UserDeletions += further.UserDeletions
	a.UserConsents += further.UserConsents
	a.UserLinks += further.UserLinks
	a.LinksLeftOut += further.LinksLeftOut
	a.Reports += further.Reports
	for _, u := range further.UnknownObjects {
		a.addUnknown(u)
	}
}

func (a *ImportAnswer) addUnknown(further UnknownObjects) {
	at := slices.IndexFunc(a.UnknownObjects, func(u UnknownObjects) bool { return u.Index == further.Index })
	if at < 0 {
		if len(a.UnknownObjects) < MaxUnknownIndexes {
			further.ObjectIDs = slices.Clone(further.ObjectIDs)
			a.UnknownObjects = append(a.UnknownObjects, further)
		}
		return
	}
	u := &a.UnknownObjects[at]
	u.Events, u.More = u.Events+further.Events, u.More || further.More
	if u.Elsewhere == nil {
		u.Elsewhere = further.Elsewhere
	}
	for _, id := range further.ObjectIDs {
		switch {
		case slices.Contains(u.ObjectIDs, id):
		case len(u.ObjectIDs) == MaxUnknownObjects:
			u.More = true
		default:
			u.ObjectIDs = append(u.ObjectIDs, id)
		}
	}
}

// RefusedLine is a line of an import that was not taken.
type RefusedLine struct {
	Line    int    `json:"line"` // from 1; blank lines count
	Message string `json:"message"`
}

// RefusedEvents is the answer of GET /1/events/refused.
type RefusedEvents struct {
	// Refused are the latest refused requests of each reason in the last
	// MaxRefusedDays days, the newest first, at most MaxRefusedEvents.
	Refused []RefusedEvent `json:"refused"`
	// Counts are how many requests of the app were refused in these days, by
	// reason. Under the reason that the user has opted out it counts accepted events, and
	// under reasons that begin with Ignored calls of SDKs that are not events.
	Counts map[string]int64 `json:"counts"`
}

// RefusedEvent is a refused request, with its first bad event.
type RefusedEvent struct {
	// At is when the request came, to the nanosecond.
	At time.Time `json:"at"`
	// Reason is the message that the client got, without its variable parts.
	Reason string `json:"reason"`
	// Field names the field whose JSON value has the wrong type, such as userToken or
	// objectData.price. Absent for other reasons.
	Field string `json:"field,omitempty"`
	// Event is the first bad event: as it was sent, or the first 4 KiB of it as
	// a string. Absent if the body as a whole was refused.
	Event json.RawMessage `json:"event,omitempty"`
	// Sequence orders refusals: a later one has a higher number.
	Sequence int64 `json:"sequence"`
	// Hint says which name the unknown name of a track call is most like, and how to give it
	// a type of event. Absent for other reasons.
	Hint string `json:"hint,omitempty"`
}

// TrackNames is the answer of GET and PUT /1/track-names, and the body of PUT: the types of
// events that the app has given names of track calls. In a body a name with the type "", or
// null, loses its type, and names that are not there keep theirs.
type TrackNames struct {
	// Names are the types, each EventView, EventClick or EventConversion, by names of 1 to
	// MaxEventName visible ASCII characters with single spaces between words. An app has at
	// most 200.
	Names map[string]string `json:"names"`
}

// SeenEvents is the answer of GET /1/events/seen: what the accepted events of the last
// days contained. Counts are some seconds old.
type SeenEvents struct {
	// Days is how many days in UTC it covers, today included.
	Days int  `json:"days"`
	AsOf Time `json:"asOf"`
	// Events are at most MaxSeen kinds of events, those of the most events first, whether
	// the strategy scores them or not.
	Events []SeenEvent `json:"events"`
	// Facets are at most MaxSeen facets, those of the most events first.
	Facets []SeenFacet `json:"facets"`
	// Nobody are at most MaxSeen user tokens that name nobody, such as undefined or 0, those
	// of the most events first. All visitors who are sent so are one user. Absent if no event
	// had one.
	Nobody []SeenToken `json:"nobody,omitempty"`
	// Truncated says that some events, facets or tokens are missing: on one of the days there were
	// more than the engine counts by name, or there are more than the answer lists.
	Truncated bool `json:"truncated"`
}

// SeenEvent counts events of a type and name.
type SeenEvent struct {
	EventType string `json:"eventType"`
	EventName string `json:"eventName"`
	Count     int64  `json:"count"`
}

// SeenFacet counts events that carried at least one filter of a facet.
type SeenFacet struct {
	Facet string `json:"facet"`
	Count int64  `json:"count"`
}

// SeenToken counts events of a user token.
type SeenToken struct {
	UserToken string `json:"userToken"`
	Count     int64  `json:"count"`
}

// RecentEventsQuery are the query parameters of GET /1/events/recent.
type RecentEventsQuery struct {
	// Limit is how many events to list, at most MaxRecentEvents. 0: DefaultRecentEvents.
	Limit int
	// After is the cursor of an earlier answer: only events that the sample got since. "":
	// all.
	After string
}

// RecentEvents is the answer of GET /1/events/recent: a sample of the events that were
// received in the last 15 minutes, the newest first.
type RecentEvents struct {
	Events []RecentEvent `json:"events"`
	// Cursor leads to newer events. Absent if the sample is empty and the request had none.
	Cursor string `json:"cursor,omitempty"`
	// Sampled is always true: of a busy app the sample has a few events of each second.
	Sampled bool `json:"sampled"`
}

// RecentEvent is an event of the sample. It lists at most 5 objects and 5 filters, the
// first ones. Filters are what the event counts for: its own, or those of its objects.
type RecentEvent struct {
	ReceivedAt Time     `json:"receivedAt"`
	UserToken  string   `json:"userToken"`
	EventType  string   `json:"eventType"`
	EventName  string   `json:"eventName"`
	Index      string   `json:"index"`
	ObjectIDs  []string `json:"objectIDs"`
	Filters    []string `json:"filters"`
}
