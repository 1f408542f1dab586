package track

import (
	"bytes"
	"encoding/json"

	"github.com/affinityengine/affinity/shared/fault"
)

// value is a text or a number as senders write it. Of another type it is empty, so that one
// odd field does not cost the call.
type value struct {
	text string
	got  string // what it is, if it is neither empty nor of the expected type
}

func (v *value) UnmarshalJSON(raw []byte) error {
	*v = value{}
	switch kind := kindOf(raw); {
	case kind == aString && bytes.IndexByte(raw, '\\') < 0:
		v.text = string(raw[1 : len(raw)-1])
	case kind == aString:
		return json.Unmarshal(raw, &v.text)
	case kind == aNumber:
		v.text = string(raw) // SDKs let numbers through as ids
	default:
		v.got = kind
	}
	return nil
}

// word is a value that may be no number.
type word struct{ value }

func (w *word) UnmarshalJSON(raw []byte) error {
	if kind := kindOf(raw); kind == aNumber {
		w.value = value{got: kind}
		return nil
	}
	return w.value.UnmarshalJSON(raw)
}

// The types of JSON values in messages.
const (
	aString = "a string"
	aNumber = "a number"
	anArray = "an array"
)

// kindOf returns the type of a JSON value in words: "" for one that stands for nothing, null,
// false, "", [] or {}. PHP writes the last three for an empty list.
func kindOf(raw []byte) string {
	switch raw[0] {
	case '"':
		if len(raw) == 2 {
			return ""
		}
		return aString
	case 't':
		return "a boolean"
	case 'n', 'f':
		return ""
	case '[', '{':
		if len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0 {
			return ""
		}
		if raw[0] == '[' {
			return anArray
		}
		return "an object"
	}
	return aNumber
}

// product names an object. Own is the name that version 1 of the specification has for ID.
type product struct {
	ID  value `json:"product_id"`
	SKU value `json:"sku"`
	Own value `json:"id"`
}

// productsOf reads products that are not a plain list of objects, from the properties of a call.
// got says what they are, unless they are a list in a text, or stand for nothing.
func productsOf(properties []byte) (list []product, got string) {
	var sent struct {
		Products json.RawMessage `json:"products"`
	}
	_ = json.Unmarshal(properties, &sent) // it is valid
	raw := []byte(sent.Products)
	if got = kindOf(raw); got == aString { // data layers write lists as JSON within a text
		var text string
		_ = json.Unmarshal(raw, &text)
		if raw = bytes.TrimSpace([]byte(text)); len(raw) == 0 {
			return nil, ""
		}
		if json.Valid(raw) {
			got = kindOf(raw)
		}
	}
	if got != anArray {
		return nil, got
	}
	if got = ""; json.Unmarshal(raw, &list) != nil {
		got = "a list of other values" // and the objects among them are read
	}
	return list, got
}

// need is what an event needs of a call.
type need int

const (
	ofCall need = iota // the type of the call
	ofName
	ofType
	ofUser
	ofObjects
	ofIndex
	needs
)

// wrong are the fields of a call whose values have another type than they should, the first
// of each need. An event only lacks what no other field gives.
type wrong [needs]error

// note notes a field, unless got is empty, which says that its value has the type it should.
func (w *wrong) note(n need, path, field, want, got string) {
	if got != "" && w[n] == nil {
		field = path + field
		w[n] = &fault.Error{Kind: fault.Invalid, Field: field,
			Message: "The field " + field + " of the track call must be " + want + ", not " + got}
	}
}
