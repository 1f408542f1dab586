// Package track reads the calls of Segment's and RudderStack's SDKs, and says which
// events of the engine they are. It stores nothing.
//
// It is a package of its own because two programs read such calls: function ingest from
// the SDKs, and the command import from files. The names of its fields are those of
// Segment's specification: https://segment.com/docs/connections/spec/ecommerce/v2/.
package track

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// Reasons for which a call gives no events.
var (
	// ErrForm says that a call is no JSON object.
	ErrForm error = fault.New(fault.Invalid, "The call is not a JSON object with the fields of a track call")
	// ErrType says that nobody knows what the user did.
	ErrType error = fault.New(fault.Invalid,
		"The name of the track call has no type of event: use a name of Segment's e-commerce specification, "+
			"give the name a type with PUT /1/track-names, or set properties.event_type to view, click or conversion")
	// ErrObjects says that the call is about no object.
	ErrObjects error = fault.New(fault.Invalid,
		"The track call names no product: set properties.product_id, properties.sku or properties.products")
)

// Track is the type of calls that may be events. All other types say who a user is, or
// which page they opened, and are not events of the engine.
const Track = "track"

// Identify and Alias are the types of calls that say who a user is.
const (
	Identify = "identify"
	Alias    = "alias"
)

// Call is what the engine reads of a call.
type Call struct {
	// Type is Track, "identify", "page", "screen", "group", "alias", or what else the
	// sender wrote.
	Type string
	// Name is what a track call calls the event. A name of the specification is written as
	// that writes it.
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
	// missing. In calls of version 1 of the specification id is product_id.
	ObjectIDs []string
	// Time is when the user acted, as the sender wrote it: timestamp, or
	// originalTimestamp. It is empty if the call has none.
	Time string
	// MessageID is what the SDK calls the call, the same in each delivery of it. It becomes
	// the eventId of the events. It may be empty.
	MessageID string
	// SentAt is when the SDK sent this delivery, by the clock of the device. It is empty if
	// the call does not say it: SDKs say it once for a batch.
	SentAt string

	// Consent is what the event may be used for: context.consent.categoryPreferences, and the allowedConsentIds and
	// deniedConsentIds of context.consentManagement. Values of other forms than the engine reads are not there.
	Consent map[string]any

	anonymous, previous string // anonymousId and previousId
	named               bool   // the call has a userId

	corrected bool // Time is no longer by the clock of the device: Segment writes both times then

	written string // the name as the sender wrote it, but for white space
	typed   bool   // the call says its type itself
	wrong   wrong
}

// instant is a time as JSON has it.
type instant string

func (i *instant) UnmarshalJSON(raw []byte) error {
	*i = instant(event.TimeText(raw))
	return nil
}

// Parse reads a call. The error is ErrForm, or names the probable encoding of a call that
// is not UTF-8. A field of the wrong type is as good as missing: the errors of Events,
// TypeFault and IndexFault name it if an event needs it.
func Parse(raw []byte) (Call, error) {
	var sent struct {
		Type              word            `json:"type"`
		Event             word            `json:"event"`
		UserID            value           `json:"userId"`
		AnonymousID       value           `json:"anonymousId"`
		PreviousID        value           `json:"previousId"`
		MessageID         value           `json:"messageId"`
		SentAt            instant         `json:"sentAt"`
		Timestamp         instant         `json:"timestamp"`
		OriginalTimestamp instant         `json:"originalTimestamp"`
		Context           json.RawMessage `json:"context"`    // it may be anything, too
		Properties        json.RawMessage `json:"properties"` // of a page it may be anything
	}
	if reason := fault.NotUTF8(raw); reason != "" {
		return Call{}, fault.New(fault.Malformed, "The call is not valid UTF-8: %s", reason)
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &sent) != nil {
		return Call{}, ErrForm
	}
	c := Call{Type: sent.Type.text, UserToken: cmp.Or(sent.UserID.text, sent.AnonymousID.text),
		Time: cmp.Or(string(sent.Timestamp), string(sent.OriginalTimestamp)), MessageID: eventID(sent.MessageID.text),
		SentAt: string(sent.SentAt)}
	c.anonymous, c.previous, c.named = sent.AnonymousID.text, sent.PreviousID.text, sent.UserID.text != ""
	c.corrected = sent.Timestamp != "" && sent.OriginalTimestamp != ""
	c.wrong.note(ofCall, "", "type", aString, sent.Type.got)
	if c.Type != Track && c.Type != "" {
		return c, nil
	}
	c.Consent = carried(sent.Context)
	c.wrong.note(ofName, "", "event", aString, sent.Event.got)
	c.wrong.note(ofUser, "", "userId", anID, sent.UserID.got) // that of anonymousId would be another profile
	if c.UserToken == "" {
		c.wrong.note(ofUser, "", "anonymousId", anID, sent.AnonymousID.got)
	}
	var s specified
	c.Name, s = named(sent.Event.text)
	if c.written = c.Name; c.Name != sent.Event.text {
		c.written = Trim(sent.Event.text)
	}
	c.EventType = s.kind
	if len(sent.Properties) > 0 {
		c.read(sent.Properties, s.v1)
	}
	return c, nil
}

// carried returns what a context says of consent, in the form of Segment and in that of RudderStack. What one of
// them denies is denied.
func carried(context []byte) map[string]any {
	var sent struct {
		Consent struct {
			Preferences map[string]any `json:"categoryPreferences"`
		} `json:"consent"`
		Management struct {
			Allowed any `json:"allowedConsentIds"`
			Denied  any `json:"deniedConsentIds"`
		} `json:"consentManagement"`
	}
	named := bytes.Contains(context, []byte("categoryPreferences")) || bytes.Contains(context, []byte("onsentIds"))
	if !named || json.Unmarshal(context, &sent) != nil {
		return nil
	}
	said := sent.Consent.Preferences
	maps.DeleteFunc(said, func(_ string, value any) bool {
		_, plain := value.(bool)
		return !plain && value != "granted" && value != "denied"
	})
	note := func(ids any, granted bool) {
		list, _ := ids.([]any) // some providers have other forms, which the engine does not read
		for _, id := range list {
			name, ok := id.(string)
			if before, known := said[name]; !ok || known && granted && (before == false || before == "denied") {
				continue
			}
			if said == nil {
				said = map[string]any{}
			}
			said[name] = granted
		}
	}
	note(sent.Management.Allowed, true)
	note(sent.Management.Denied, false)
	return said
}

// anID is what the fields of users and products must be.
const anID = "a string or a number"

// read reads the properties of a call, whose name may be of version 1 of the specification.
func (c *Call) read(raw json.RawMessage, v1 bool) {
	if raw[0] != '{' {
		c.wrong.note(ofType, "", "properties", "an object", kindOf(raw))
		c.wrong.note(ofObjects, "", "properties", "an object", kindOf(raw))
		return
	}
	var properties struct {
		product
		Products    []product `json:"products"`
		SearchIndex word      `json:"search_index"`
		EventType   word      `json:"event_type"`
	}
	got := ""
	if json.Unmarshal(raw, &properties) != nil { // the call is valid JSON, and the other fields take any value
		properties.Products, got = productsOf(raw)
	}
	c.Index = properties.SearchIndex.text
	c.wrong.note(ofIndex, "properties.", "search_index", aString, properties.SearchIndex.got)
	if own := properties.EventType.text; own != "" {
		c.EventType, c.typed = own, true
	}
	c.wrong.note(ofType, "properties.", "event_type", aString, properties.EventType.got)
	seen := map[string]bool{}
	c.add(properties.product, "properties.", v1, seen)
	for _, p := range properties.Products {
		c.add(p, "properties.products.", v1, seen)
	}
	c.wrong.note(ofObjects, "properties.", "products", "a list of objects", got)
}

// add adds the object that a product names, unless the call has it.
func (c *Call) add(p product, path string, v1 bool, seen map[string]bool) {
	id := p.ID.text
	if v1 {
		id = cmp.Or(id, p.Own.text)
	}
	if id = cmp.Or(id, p.SKU.text); id != "" && !seen[id] {
		seen[id] = true
		c.ObjectIDs = append(c.ObjectIDs, id)
	}
	c.wrong.note(ofObjects, path, "product_id", anID, p.ID.got)
	c.wrong.note(ofObjects, path, "sku", anID, p.SKU.got)
	if v1 {
		c.wrong.note(ofObjects, path, "id", anID, p.Own.got)
	}
}

// TypeFault names the type of the call, if its value has the wrong type; else nil.
func (c Call) TypeFault() error { return c.wrong[ofCall] }

// SignIn returns the id under which the user of the call was anonymous before they signed in: the previousId of an
// alias call, the anonymousId of an identify or track call. It is empty if the call says of no such id, or
// names no user.
func (c Call) SignIn() (anonymous string) {
	switch c.Type {
	case Alias:
		anonymous = c.previous
	case Identify, Track, "":
		anonymous = c.anonymous
	}
	if !c.named || anonymous == c.UserToken {
		return ""
	}
	return anonymous
}

// IndexFault names the index of the call, if its value has the wrong type; else nil.
func (c Call) IndexFault() error { return c.wrong[ofIndex] }

// Events returns the events of a track call. An event names at most
// api.MaxEventTargets objects, so a call with more becomes several events, which count
// the same together: an event counts once for each of its objects. The times of the
// events are that of the call; if it has none, they have none either. The error is
// ErrType, ErrObjects, that of event.ParseTime, or names a field whose value has the wrong
// type.
//
// The same call gives the same events each time, so a call that an SDK sends again
// changes nothing.
func (c Call) Events() ([]api.Event, error) {
	switch {
	case c.Name == "" && c.wrong[ofName] != nil:
		return nil, c.wrong[ofName]
	case c.EventType == "":
		return nil, cmp.Or(c.wrong[ofType], ErrType)
	case c.wrong[ofUser] != nil:
		return nil, c.wrong[ofUser]
	case len(c.ObjectIDs) == 0:
		return nil, cmp.Or(c.wrong[ofObjects], ErrObjects)
	}
	one := api.Event{EventType: c.EventType, EventName: c.Name, UserToken: c.UserToken, Index: c.Index,
		EventID: c.MessageID, Consent: c.Consent}
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
