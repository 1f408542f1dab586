package catalog

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// Kind is what an action does to an index.
type Kind string

// The kinds of actions, by the names Algolia's clients send.
const (
	// AddObject puts a record in the place of the one with its objectID.
	AddObject Kind = "addObject"
	// UpdateObject does the same, but the objectID must be given.
	UpdateObject Kind = "updateObject"
	// PartialUpdateObject merges into the record, or puts it where there is none.
	PartialUpdateObject Kind = "partialUpdateObject"
	// PartialUpdateObjectNoCreate merges into the record if there is one.
	PartialUpdateObjectNoCreate Kind = "partialUpdateObjectNoCreate"
	// DeleteObject removes the record if there is one.
	DeleteObject Kind = "deleteObject"
	// Clear removes every record of the index.
	Clear Kind = "clear"
)

// Action is one step of a batch.
type Action struct {
	Kind Kind
	// ObjectID is the object it concerns; empty for Clear only.
	ObjectID string
	// Record is the object, or for partial updates the attributes to change: a
	// JSON object with the objectID among its attributes, without insignificant
	// whitespace. Nil for DeleteObject and Clear.
	Record []byte
}

// request is an action as it is sent.
type request struct {
	Action   Kind           `json:"action"`
	ObjectID jsontext.Value `json:"objectID"` // string or number
	Body     jsontext.Value `json:"body"`
}

// DecodeBatch reads the body of a batch, {"requests":[{"action":..,"body":{..}}]},
// whose actions are applied in their order. The objectID may stand beside the
// body or in it, and may be a number; addObject without one is given a random
// one. Keys it does not know are ignored. The error is a *fault.Error and refuses the
// whole batch, naming the request at fault: 413 where the body or a record is
// too large, 400 where the body is not of this form, 422 for all else.
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

// within names the request that an error arose in.
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

// record puts the object together, with its objectID as text.
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

// checkNoOperation refuses attributes such as {"_operation":"Increment","value":1}:
// kept as they are, they would stand in the record as if they were its value.
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
			return refuse(fault.Invalid, "attribute %q uses a built-in _operation, which is not supported: send its new value", clip(m.name))
		}
	}
	return nil
}

// id finds the objectID beside the body or among its attributes.
func (r request) id(attributes []member) (string, error) {
	beside, err := idText(r.ObjectID)
	if err != nil {
		return "", err
	}
	id, err := idText(find(attributes, objectID))
	if err != nil {
		return "", err
	}
	if id == "" {
		id = beside
	}
	switch {
	case beside != "" && beside != id:
		return "", refuse(fault.Invalid, "objectID %q differs from the body's objectID %q", clip(beside), clip(id))
	case id == "" && r.Action == AddObject:
		return rand.Text(), nil
	case id == "":
		return "", refuse(fault.Invalid, "objectID is missing, which %s needs", r.Action)
	}
	return id, nil
}

// idText is the text of an objectID, empty where none is given.
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

// present tells whether a value was sent; null is the same as none.
func present(value jsontext.Value) bool {
	return len(value) > 0 && value.Kind() != jsontext.KindNull
}

// clip keeps what a client sent from growing a message without bound.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
