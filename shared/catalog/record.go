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
	errNoObject = errors.New("not a JSON object")
	errTrailing = errors.New("something follows the end of the JSON object")
)

// member is one attribute of a record, its value as JSON.
type member struct {
	name  string
	value jsontext.Value
}

// members takes a JSON object apart. The values share its memory.
func members(object []byte) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), lenient)
	if kind := dec.PeekKind(); kind != jsontext.KindInvalid && kind != jsontext.KindBeginObject {
		return nil, errNoObject
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
		m := member{name: name.String()} // before the next read, which ends the token's life
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

// atEnd refuses what follows the end of an object.
func atEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.Join(errTrailing, err)
	}
	return nil
}

// find returns the value of the named member, nil where there is none.
func find(all []member, name string) jsontext.Value {
	for _, m := range all {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// set replaces the value of the named member, or appends the member.
func set(all []member, name string, value jsontext.Value) []member {
	for i := range all {
		if all[i].name == name {
			all[i].value = value
			return all
		}
	}
	return append(all, member{name, value})
}

// join puts a JSON object together, the reverse of members. A result that is
// too large for a record is refused with a *fault.Error.
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
	if len(out) > MaxRecord {
		return nil, refuse(fault.TooLarge, "the record has %d bytes, at most %d are accepted", len(out), MaxRecord)
	}
	return out, nil
}

// Merge applies a partial update to a record: each attribute of the patch
// replaces the whole of the record's attribute of that name, or is added. old is
// nil where there is no record yet. Attributes keep their order, new ones come
// last. The error is a *fault.Error of kind TooLarge where the result is too large for
// a record; any other says that one of the two is no JSON object.
func Merge(old, patch []byte) ([]byte, error) {
	changes, err := members(patch)
	if err != nil {
		return nil, fmt.Errorf("read partial update: %w", err)
	}
	if old == nil {
		return join(changes)
	}
	all, err := members(old)
	if err != nil {
		return nil, fmt.Errorf("read stored record: %w", err)
	}
	at := make(map[string]int, len(all))
	for i, m := range all {
		at[m.name] = i
	}
	for _, m := range changes {
		if i, ok := at[m.name]; ok {
			all[i].value = m.value
		} else {
			all = append(all, m)
		}
	}
	return join(all)
}
