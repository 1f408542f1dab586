// Package tree holds a JSON document as a tree whose objects keep the order of
// their keys, which the pages of a document need and encoding/json loses.
package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Object is a JSON object. The zero value is empty and ready to use. A nil
// *Object reads as an empty one.
type Object struct {
	keys   []string
	values map[string]any
}

// Keys returns the keys in their order.
func (o *Object) Keys() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// Has reports whether the object has a key.
func (o *Object) Has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.values[key]
	return ok
}

// Value returns the value of a key: nil, a bool, a json.Number, a string, a
// []any or an *Object. It is nil for an unknown key.
func (o *Object) Value(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

// At returns the object at a path of keys, and nil if there is none.
func (o *Object) At(path ...string) *Object {
	for _, key := range path {
		o, _ = o.Value(key).(*Object)
	}
	return o
}

// Text returns the value of a key as text, and "" if it is not a string.
func (o *Object) Text(key string) string {
	s, _ := o.Value(key).(string)
	return s
}

// True reports whether the value of a key is true.
func (o *Object) True(key string) bool { return o.Value(key) == true }

// List returns the value of a key as a list, and nil if it is not one.
func (o *Object) List(key string) []any {
	list, _ := o.Value(key).([]any)
	return list
}

// Objects returns those elements of a list that are objects.
func (o *Object) Objects(key string) []*Object {
	var objects []*Object
	for _, v := range o.List(key) {
		if element, ok := v.(*Object); ok {
			objects = append(objects, element)
		}
	}
	return objects
}

// Texts returns those elements of a list that are strings.
func (o *Object) Texts(key string) []string {
	var texts []string
	for _, v := range o.List(key) {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// Set gives a key a value. A new key comes last.
func (o *Object) Set(key string, value any) {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// Delete removes a key.
func (o *Object) Delete(key string) {
	if !o.Has(key) {
		return
	}
	delete(o.values, key)
	o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
}

// Ensure returns the object of a key, and makes an empty one if it is absent.
func (o *Object) Ensure(key string) *Object {
	if inner := o.At(key); inner != nil {
		return inner
	}
	inner := &Object{}
	o.Set(key, inner)
	return inner
}

// Decode reads one JSON value.
func Decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := value(d)
	if err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if d.More() {
		return nil, fmt.Errorf("decode JSON: something follows the value at byte %d", d.InputOffset())
	}
	return v, nil
}

func value(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return object(d)
	case json.Delim('['):
		return list(d)
	}
	return token, nil
}

func object(d *json.Decoder) (any, error) {
	o := &Object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := value(d)
		if err != nil {
			return nil, err
		}
		o.Set(key.(string), v)
	}
	_, err := d.Token()
	return o, err
}

func list(d *json.Decoder) (any, error) {
	l := []any{}
	for d.More() {
		v, err := value(d)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	_, err := d.Token()
	return l, err
}

// Format writes a value as JSON for people: what fits into width columns stands
// on one line, all else is indented by two spaces a level.
func Format(v any, width int) string {
	var b strings.Builder
	format(&b, v, 0, width)
	return b.String()
}

func format(b *strings.Builder, v any, indent, width int) {
	var open, end string
	var lines []func()
	switch v := v.(type) {
	case *Object:
		open, end = "{", "}"
		for _, key := range v.Keys() {
			lines = append(lines, func() {
				b.WriteString(scalar(key) + ": ")
				format(b, v.Value(key), indent+2, width)
			})
		}
	case []any:
		open, end = "[", "]"
		for _, element := range v {
			lines = append(lines, func() { format(b, element, indent+2, width) })
		}
	}
	if flat := Compact(v); len(lines) == 0 || len(flat)+indent <= width {
		b.WriteString(flat)
		return
	}
	b.WriteString(open)
	for i, line := range lines {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n" + strings.Repeat(" ", indent+2))
		line()
	}
	b.WriteString("\n" + strings.Repeat(" ", indent) + end)
}

// Compact writes a value as JSON on one line, with a space after a comma and a
// colon.
func Compact(v any) string {
	var parts []string
	switch v := v.(type) {
	case *Object:
		for _, key := range v.Keys() {
			parts = append(parts, scalar(key)+": "+Compact(v.Value(key)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, element := range v {
			parts = append(parts, Compact(element))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return scalar(v)
}

func scalar(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprintf("%q", fmt.Sprint(v)) // of no type that Decode returns
	}
	return strings.TrimSpace(b.String())
}
