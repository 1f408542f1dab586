package catalog

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Kind says what an action does to an index.
type Kind string

// The kinds of actions, by the names that Algolia's clients send.
const (
	// AddObject stores a record, and replaces the one that has its objectID. A
	// record without an objectID gets a random one.
	AddObject Kind = "addObject"
	// UpdateObject is AddObject for a record that must have an objectID.
	UpdateObject Kind = "updateObject"
	// PartialUpdateObject replaces attributes of a record. If the record does
	// not exist, it is created.
	PartialUpdateObject Kind = "partialUpdateObject"
	// PartialUpdateObjectNoCreate does nothing if the record does not exist.
	PartialUpdateObjectNoCreate Kind = "partialUpdateObjectNoCreate"
	// DeleteObject removes a record. It does nothing if the record does not
	// exist.
	DeleteObject Kind = "deleteObject"
	// Clear removes every record of the index.
	Clear Kind = "clear"
)

// Action is one step of a batch.
type Action struct {
	Kind Kind
	// ObjectID names the object. It is empty for Clear alone.
	ObjectID string
	// Record is the record, or the attributes that a partial update replaces: a
	// JSON object that includes the objectID, without insignificant whitespace.
	// It is nil for DeleteObject and Clear.
	Record []byte
}

// request is an action as it is sent.
type request struct {
	Action   Kind           `json:"action"`
	ObjectID jsontext.Value `json:"objectID"` // string or number
	Body     jsontext.Value `json:"body"`
}

// DecodeBatch decodes the body of a batch,
// {"requests":[{"action":..,"body":{..}}]}, and returns its actions in their
// order. The objectID may be a key of a request or of its body, and may be a
// number. Unknown keys of a request are ignored.
//
// The error is a *fault.Error, names the first bad request, and refuses the
// whole batch. Its kind is TooLarge if the body or a record is too large,
// Malformed if the body does not have this form, and Invalid otherwise.
func DecodeBatch(body []byte) ([]Action, error) {
	var batch *struct {
		Requests *[]request `json:"requests"`
	}
	if err := unmarshal(body, &batch); err != nil {
		return nil, err
	}
	if batch == nil || batch.Requests == nil {
		return nil, refuse(fault.Malformed, `the body must have the form {"requests":[...]}`)
	}
	requests := *batch.Requests
	if len(requests) > MaxActions {
		return nil, refuse(fault.Invalid, "the batch has %d requests, at most %d are accepted", len(requests), MaxActions)
	}
	actions := make([]Action, len(requests))
	for i, r := range requests {
		a, err := r.decode()
		if err != nil {
			return nil, within(i, err)
		}
		actions[i] = a
	}
	return actions, nil
}

// within adds the number of the bad request to an error.
func within(i int, err error) error {
	kind := fault.Invalid
	var refusal *fault.Error
	if errors.As(err, &refusal) {
		kind = refusal.Kind
	}
	return refuse(kind, "requests[%d]: %v", i, err)
}

func (r request) decode() (Action, error) {
	switch r.Action {
	case Clear:
		return Action{Kind: Clear}, nil
	case AddObject, UpdateObject, PartialUpdateObject, PartialUpdateObjectNoCreate, DeleteObject:
	case "":
		return Action{}, refuse(fault.Invalid, "action is missing")
	default:
		return Action{}, refuse(fault.Invalid, "unknown action %q", clip(string(r.Action)))
	}
	var attributes []member
	if present(r.Body) {
		if err := r.Body.Compact(); err != nil {
			return Action{}, fmt.Errorf("body: %w", err)
		}
		var err error
		if attributes, err = members(r.Body); err != nil {
			return Action{}, fmt.Errorf("body: %w", err)
		}
	} else if r.Action != DeleteObject {
		return Action{}, refuse(fault.Invalid, "body is missing")
	}
	id, err := r.id(attributes)
	if err != nil || r.Action == DeleteObject {
		return Action{Kind: r.Action, ObjectID: id}, err
	}
	record, err := r.record(attributes, id)
	return Action{Kind: r.Action, ObjectID: id, Record: record}, err
}

// record encodes the record, with its objectID as a string.
func (r request) record(attributes []member, id string) ([]byte, error) {
	if r.Action == PartialUpdateObject || r.Action == PartialUpdateObjectNoCreate {
		if err := checkNoOperation(attributes); err != nil {
			return nil, err
		}
	}
	text, err := jsontext.AppendQuote(nil, id)
	if err != nil {
		return nil, fmt.Errorf("write objectID: %w", err)
	}
	return join(set(attributes, objectID, text))
}

// checkNoOperation refuses attributes such as
// {"_operation":"Increment","value":1}. The engine does not run these
// operations, and would store them as values.
func checkNoOperation(attributes []member) error {
	for _, m := range attributes {
		if m.value.Kind() != jsontext.KindBeginObject {
			continue
		}
		inner, err := members(m.value)
		if err != nil {
			return fmt.Errorf("attribute %q: %w", clip(m.name), err)
		}
		if find(inner, "_operation") != nil {
			return refuse(fault.Invalid,
				"attribute %q uses a built-in _operation, which is not supported: send its new value", clip(m.name))
		}
	}
	return nil
}

// id returns the objectID of a request or of its body.
func (r request) id(attributes []member) (string, error) {
	outer, err := idText(r.ObjectID)
	if err != nil {
		return "", err
	}
	id, err := idText(find(attributes, objectID))
	if err != nil {
		return "", err
	}
	if id == "" {
		id = outer
	}
	switch {
	case outer != "" && outer != id:
		return "", refuse(fault.Invalid, "objectID %q differs from the body's objectID %q", clip(outer), clip(id))
	case id == "" && r.Action == AddObject:
		return rand.Text(), nil
	case id == "":
		return "", refuse(fault.Invalid, "objectID is missing, which %s needs", r.Action)
	}
	return id, nil
}

// idText returns an objectID as text. It is empty if the value is absent.
func idText(value jsontext.Value) (string, error) {
	if !present(value) {
		return "", nil
	}
	id := string(value)
	switch value.Kind() {
	case jsontext.KindNumber:
	case jsontext.KindString:
		if err := json.Unmarshal(value, &id, lenient); err != nil {
			return "", fmt.Errorf("objectID: %w", err)
		}
	default:
		return "", refuse(fault.Invalid, "objectID must be a string or a number")
	}
	if id == "" || len(id) > MaxObjectID {
		return "", refuse(fault.Invalid, "objectID must have 1 to %d bytes, got %d", MaxObjectID, len(id))
	}
	if id == "." || id == ".." {
		return "", refuse(fault.Invalid, "objectID must not be %q: no path can name it", id)
	}
	return id, nil
}

// present reports whether a value was sent. null counts as absent.
func present(value jsontext.Value) bool {
	return len(value) > 0 && value.Kind() != jsontext.KindNull
}

// clip shortens text of a client for a message.
func clip(s string) string {
	const maxBytes = 100
	if len(s) > maxBytes {
		return s[:maxBytes] + "..."
	}
	return s
}
