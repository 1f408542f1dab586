package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/fault"
)

// objectID is the attribute that names a record within its index.
const objectID = "objectID"

var (
	errNotObject = errors.New("not a JSON object")
	errTrailing  = errors.New("there is more after the end of the JSON object")
)

// member is an attribute of a record, with its value as JSON.
type member struct {
	name  string
	value jsontext.Value
}

// members returns the attributes of a JSON object. The values share its memory.
func members(object []byte) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), lenient)
	if kind := dec.PeekKind(); kind != jsontext.KindInvalid && kind != jsontext.KindBeginObject {
		return nil, errNotObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var all []member
	for dec.PeekKind() != jsontext.KindEndObject {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()} // the token is invalid after the next read
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := dec.InputOffset()
		m.value = object[end-int64(len(value)) : end]
		all = append(all, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	return all, atEnd(dec)
}

// atEnd returns an error unless the input of dec is at its end.
func atEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.Join(errTrailing, err)
	}
	return nil
}

// find returns the value of an attribute, or nil.
func find(all []member, name string) jsontext.Value {
	for _, m := range all {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set replaces the value of an attribute, or appends the attribute.
func set(all []member, name string, value jsontext.Value) []member {
	for i := range all {
		if all[i].name == name {
			all[i].value = value
			return all
		}
	}
	return append(all, member{name, value})
}

// join encodes attributes as a JSON object. The error is a *fault.Error if the
// object is too large for a record.
func join(all []member) ([]byte, error) {
	out := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = jsontext.AppendQuote(out, m.name); err != nil {
			return nil, fmt.Errorf("write attribute %q: %w", m.name, err)
		}
		out = append(append(out, ':'), m.value...)
	}
	out = append(out, '}')
	return out, checkSize(len(out))
}

// checkSize returns a *fault.Error if a record of this many bytes is too large.
func checkSize(size int) error {
	if size > MaxRecord {
		return refuse(fault.TooLarge, "the record has %d bytes, at most %d are accepted", size, MaxRecord)
	}
	return nil
}

// updated is a record while partial updates change it. An update costs what it
// sends, however large the record is.
type updated struct {
	attributes []member
	at         map[string]int // index of each attribute by name
	size       int            // bytes of the record as JSON
}

// open returns a record for updates. old is nil if there is no record yet.
func open(old []byte) (*updated, error) {
	u := &updated{at: map[string]int{}, size: len("{}")}
	if old == nil {
		return u, nil
	}
	all, err := members(old)
	if err != nil {
		return nil, fmt.Errorf("read stored record: %w", err)
	}
	for _, m := range all {
		if err := u.put(m); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// update applies a partial update. The error is a *fault.Error of kind TooLarge if
// the result is too large for a record.
func (u *updated) update(patch []byte) error {
	changes, err := members(patch)
	if err != nil {
		return fmt.Errorf("read partial update: %w", err)
	}
	for _, m := range changes {
		if err := u.put(m); err != nil {
			return err
		}
	}
	return checkSize(u.size)
}

// put replaces an attribute, or appends it.
func (u *updated) put(m member) error {
	if i, ok := u.at[m.name]; ok {
		u.size += len(m.value) - len(u.attributes[i].value)
		u.attributes[i].value = m.value
		return nil
	}
	name, err := jsontext.AppendQuote(nil, m.name)
	if err != nil {
		return fmt.Errorf("write attribute %q: %w", m.name, err)
	}
	if len(u.attributes) > 0 {
		u.size += len(",")
	}
	u.size += len(name) + len(":") + len(m.value)
	u.at[m.name] = len(u.attributes)
	u.attributes = append(u.attributes, m)
	return nil
}

// Merge applies a partial update to a record. Each attribute of the patch
// replaces the whole attribute of the record that has its name, or is appended.
// old is nil if there is no record yet. Attributes keep their order.
//
// The error is a *fault.Error of kind TooLarge if the result is too large for a
// record. Any other error means that old or patch is not a JSON object.
func Merge(old, patch []byte) ([]byte, error) {
	u, err := open(old)
	if err != nil {
		return nil, err
	}
	if err := u.update(patch); err != nil {
		return nil, err
	}
	return join(u.attributes)
}
