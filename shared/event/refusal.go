package event

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Refusal is the reason why the decoder refused a body or an event. It is
// permanent: the decoder refuses the same request every time.
type Refusal struct {
	// Kind is Malformed, Invalid or TooLarge.
	Kind fault.Kind
	// Message is for the client. It contains no data that the client sent.
	Message string
	// Field names the field whose JSON value has the wrong type, such as userToken or
	// objectData.price; "events" if the event is no object. It is empty for other faults.
	Field string
	// Position is the index of the refused event in its batch, 0 for a single
	// event, or -1 if the body as a whole is refused.
	Position int
	// Event is the JSON of the refused event. It shares the body's memory and
	// is nil if the body as a whole is refused.
	Event []byte
}

// Error names the event, the kind of fault and the reason.
func (r *Refusal) Error() string {
	if r.Position < 0 {
		return fmt.Sprintf("body is %s: %s", r.Kind, r.Message)
	}
	return fmt.Sprintf("event %d is %s: %s", r.Position, r.Kind, r.Message)
}

// Unwrap returns the answer for the client.
func (r *Refusal) Unwrap() error {
	return &fault.Error{Kind: r.Kind, Message: r.Message, Field: r.Field}
}

// Reason returns the message without byte offsets. It is one of a small fixed
// set, so refusals can be counted by it.
func (r *Refusal) Reason() string {
	if r.Kind == fault.Malformed {
		return msgBadRequest
	}
	return r.Message
}

// Messages that the Insights API publishes, word for word: developers search
// the web for them.
const (
	msgTooLarge       = "Request Entity Too Large"
	msgPayload        = "Invalid payload"
	msgNoEvents       = "No events to process"
	msgUnwrapped      = `No events to process: send {"events":[...]}` // of an event alone
	msgArrayBody      = "Invalid type for field : expected insights.PublicEventsBatch, got array"
	msgTooManyEvents  = "Cannot process more than 1000 events in a batch"
	msgNameRequired   = "EventName is required"
	msgNameForm       = "EventName must contain only visible ASCII characters, and be between 1 and 64 characters long"
	msgTypeRequired   = "EventType is required"
	msgTypeForm       = `EventType must be one of "click", "conversion", "view" or "instantsearch"`
	msgIndexRequired  = "The index field is required"
	msgTokenRequired  = "The userToken field is required"
	msgTokenForm      = "UserToken " + tokenForm
	msgNoTarget       = "Event should specify either some ObjectIDs or some Filters"
	msgBothTargets    = "Event should specify ObjectIDs or Filters, but not both"
	msgPositionsClick = "Only event of type click should specify the positions attribute"
	msgPositionsQuery = "Event of type click with positions should specify a queryID"
	msgPositionsForm  = "Event of type click may only have strictly positive positions"
	msgPositionsCount = "Event of type click should have the same number of ObjectIDs and Positions"
	msgQueryID        = "Query ID must be a search query ID (32 characters hexadecimal string)"
	msgTooOld         = "The timestamp is too far in the past"

	tokenForm = "must contain only alphanumeric, equal, plus, slash, hyphen, or underscore characters, and be " +
		"between 1 and 128 characters long"
)

// Messages of rules for which the API publishes no text.
const (
	msgBadRequest       = "Bad Request"
	msgAuthToken        = "AuthenticatedUserToken " + tokenForm
	msgIndexLong        = "Index must be at most 512 bytes long"
	msgTooManyObjects   = "Event should specify at most 20 ObjectIDs"
	msgTooManyFilters   = "Event should specify at most 20 Filters"
	msgObjectIDForm     = "ObjectIDs must be between 1 and 512 bytes long"
	msgFilterForm       = "Filters must be of the form attribute:value"
	msgFilterLong       = "Filters must be at most 2048 bytes long"
	msgTimestampForm    = "The timestamp must be a non-negative integer of milliseconds"
	msgSubtypeForm      = `EventSubtype must be one of "addToCart" or "purchase"`
	msgSubtypeType      = "Only event of type conversion should specify the eventSubtype attribute"
	msgObjectDataCount  = "Event with objectData should have the same number of ObjectIDs and objectData"
	msgObjectDataQuery  = "Query ID in objectData must be a search query ID (32 characters hexadecimal string)"
	msgObjectDataAmount = "Quantity in objectData must be a 32-bit integer"
	msgValueLong        = "Value must be a number or a string of at most 16 characters"
	msgCurrency         = "Currency must be a code of three letters"
	msgEventIDLong      = "EventId must be at most 128 bytes long"
	msgConsentLong      = "Consent must deny at most 64 names"
	msgAgentIDType      = "Only event of type instantsearch should specify the agentID attribute"
)

// typeMessage returns the message about a JSON value of the wrong type, such as
// Invalid type for field events: expected string, got number.
func typeMessage(field, want string, got jsontext.Kind) string {
	return "Invalid type for field " + field + ": expected " + want + ", got " + kindName(got)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindString:
		return "string"
	case jsontext.KindNumber:
		return "number"
	case jsontext.KindBeginArray:
		return "array"
	case jsontext.KindBeginObject:
		return "object"
	case jsontext.KindNull:
		return "null"
	default:
		return "bool"
	}
}

func refuseBody(message string) *Refusal {
	return &Refusal{Kind: fault.Invalid, Message: message, Position: -1}
}

// badRequest reports the offset at which the JSON is invalid. It does not use
// the library's text, which quotes the client's data.
func badRequest(what string, offset int64) *Refusal {
	message := msgBadRequest + ": " + what + " at byte " + strconv.FormatInt(offset, 10)
	return &Refusal{Kind: fault.Malformed, Message: message, Position: -1}
}

// asRefusal converts an error of reading size bytes of JSON to a Refusal.
func asRefusal(err error, size int) *Refusal {
	var refusal *Refusal
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("JSON ends too early", int64(size))
	case errors.As(err, &syntax):
		return badRequest("invalid JSON", syntax.ByteOffset)
	default:
		return badRequest("unreadable JSON", 0)
	}
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8.
func invalidUTF8(body []byte) int64 {
	at := 0
	for at < len(body) {
		r, size := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return int64(at)
}
