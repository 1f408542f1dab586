// Package track reads the calls of Segment's and RudderStack's SDKs, and says which
// events of the engine they are. It stores nothing.
//
// It is a package of its own because two programs read such calls: function ingest from
// the SDKs, and the command import from files. The names of its fields are those of
// Segment's specification: https://segment.com/docs/connections/spec/ecommerce/v2/.
package track

import (
	"encoding/json"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// Reasons for which a call gives no events.
var (
	// ErrForm says that a call is not a JSON object with the fields of a call.
	ErrForm error = fault.New(fault.Invalid, "The call is not a JSON object with the fields of a track call")
	// ErrType says that nobody knows what the user did.
	ErrType error = fault.New(fault.Invalid,
		"The name of the track call has no type of event: use a name of Segment's e-commerce specification, "+
			"or set properties.event_type to view, click or conversion")
	// ErrObjects says that the call is about no object.
	ErrObjects error = fault.New(fault.Invalid,
		"The track call names no product: set properties.product_id, properties.sku or properties.products")
)

// types are the names of events for which Segment's specification of e-commerce says what
// a user did.
var types = map[string]string{
	"Product Viewed": api.EventView, "Product List Viewed": api.EventView, "Cart Viewed": api.EventView,
	"Product Clicked": api.EventClick, "Product Added": api.EventClick, "Product Added to Wishlist": api.EventClick,
	"Order Completed": api.EventConversion, "Product Purchased": api.EventConversion,
}

// Track is the type of calls that may be events. All other types say who a user is, or
// which page they opened, and are not events of the engine.
const Track = "track"

// Call is what the engine reads of a call.
type Call struct {
	// Type is Track, "identify", "page", "screen", "group", "alias", or what else the
	// sender wrote.
	Type string
	// Name is what a track call calls the event.
	Name string
	// EventType is the type of the event: that of properties.event_type, or that of the
	// name. It is empty if neither says it.
	EventType string
	// UserToken is the userId, or the anonymousId of a call without one.
	UserToken string
	// Index is the index of the objects: properties.search_index, the property that
	// Segment's own destination for Algolia reads. It may be empty.
	Index string
	// ObjectIDs are the products of the call, each once: product_id, or sku where that is
	// missing.
	ObjectIDs []string
	// Time is when the user acted, as the sender wrote it: timestamp, or
	// originalTimestamp. It is empty if the call has none.
	Time string
}

// text is a JSON string or a number, which SDKs let through as ids.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		*t = text(raw)
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// instant is a time as JSON has it.
type instant string

func (i *instant) UnmarshalJSON(raw []byte) error {
	*i = instant(event.TimeText(raw))
	return nil
}

// product names an object.
type product struct {
	ID  text `json:"product_id"`
	SKU text `json:"sku"`
}

// Parse reads a call. The error is ErrForm, or names the probable encoding of a call that
// is not UTF-8.
func Parse(raw []byte) (Call, error) {
	var sent struct {
		Type              string          `json:"type"`
		Event             string          `json:"event"`
		UserID            text            `json:"userId"`
		AnonymousID       text            `json:"anonymousId"`
		Timestamp         instant         `json:"timestamp"`
		OriginalTimestamp instant         `json:"originalTimestamp"`
		Properties        json.RawMessage `json:"properties"` // of a page it may be anything
	}
	if reason := fault.NotUTF8(raw); reason != "" {
		return Call{}, fault.New(fault.Malformed, "The call is not valid UTF-8: %s", reason)
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &sent) != nil {
		return Call{}, ErrForm
	}
	c := Call{Type: sent.Type, Name: sent.Event, UserToken: first(sent.UserID, sent.AnonymousID),
		Time: first(sent.Timestamp, sent.OriginalTimestamp)}
	if c.Type != Track && c.Type != "" {
		return c, nil
	}
	var properties struct {
		product
		Products    []product `json:"products"`
		SearchIndex string    `json:"search_index"`
		EventType   string    `json:"event_type"`
	}
	if len(sent.Properties) > 0 && json.Unmarshal(sent.Properties, &properties) != nil {
		return Call{}, ErrForm
	}
	c.Index = properties.SearchIndex
	if c.EventType = properties.EventType; c.EventType == "" {
		c.EventType = types[c.Name]
	}
	seen := map[string]bool{}
	for _, p := range append([]product{properties.product}, properties.Products...) {
		if id := first(p.ID, p.SKU); id != "" && !seen[id] {
			seen[id] = true
			c.ObjectIDs = append(c.ObjectIDs, id)
		}
	}
	return c, nil
}

func first[T ~string](texts ...T) string {
	for _, t := range texts {
		if t != "" {
			return string(t)
		}
	}
	return ""
}

// Events returns the events of a track call. An event names at most
// api.MaxEventTargets objects, so a call with more becomes several events, which count
// the same together: an event counts once for each of its objects. The times of the
// events are that of the call; if it has none, they have none either. The error is
// ErrType, ErrObjects, or that of event.ParseTime.
//
// The same call gives the same events each time, so a call that an SDK sends again
// changes nothing. sentAt, which SDKs set for each attempt, plays no part.
func (c Call) Events() ([]api.Event, error) {
	switch {
	case c.EventType == "":
		return nil, ErrType
	case len(c.ObjectIDs) == 0:
		return nil, ErrObjects
	}
	one := api.Event{EventType: c.EventType, EventName: c.Name, UserToken: c.UserToken, Index: c.Index}
	if c.Time != "" {
		at, err := event.ParseTime(c.Time)
		if err != nil {
			return nil, err
		}
		one.Timestamp = at
	}
	var events []api.Event
	for part := range slices.Chunk(c.ObjectIDs, api.MaxEventTargets) {
		one.ObjectIDs = part
		events = append(events, one)
	}
	return events, nil
}
