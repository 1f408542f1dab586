package rank

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// object reads an object. It calls field with the name of each member, and
// field reads the member's value.
func (d *decoder) object(field func(name string) error) error {
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	for d.json.PeekKind() != jsontext.KindEndObject {
		name, err := d.json.ReadValue()
		if err != nil {
			return err
		}
		if err := field(d.unquote(name)); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	return err
}

// array reads an array. It calls element for each element, which reads it.
func (d *decoder) array(element func() error) error {
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	for d.json.PeekKind() != jsontext.KindEndArray {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := d.json.ReadToken()
	return err
}

func (d *decoder) string() (string, error) {
	if kind := d.json.PeekKind(); kind != jsontext.KindString {
		return "", d.wrong("a string", kind)
	}
	quoted, err := d.json.ReadValue()
	if err != nil {
		return "", err
	}
	return d.unquote(quoted), nil
}

func (d *decoder) boolean(into *bool) error {
	switch kind := d.json.PeekKind(); kind {
	case jsontext.KindTrue, jsontext.KindFalse:
		*into = kind == jsontext.KindTrue
		return d.json.SkipValue()
	default:
		return d.wrong("true or false", kind)
	}
}

// integer reads an integer, which must be written as one: 10, not 10.0 or 1e1.
func (d *decoder) integer(low, high int, want string, take func(int)) error {
	kind := d.json.PeekKind()
	if kind != jsontext.KindNumber {
		return d.wrong(want, kind)
	}
	literal, err := d.json.ReadValue()
	if err != nil {
		return d.notNumber(err)
	}
	n, err := strconv.Atoi(string(literal))
	if err != nil || n < low || n > high {
		return invalid("%s must be %s, got %s", path(d.json.StackPointer()), want, literal)
	}
	take(n)
	return nil
}

func (d *decoder) number() (float64, error) {
	kind := d.json.PeekKind()
	if kind != jsontext.KindNumber {
		return 0, d.wrong("a number", kind)
	}
	literal, err := d.json.ReadValue()
	if err != nil {
		return 0, d.notNumber(err)
	}
	n, err := strconv.ParseFloat(d.source(literal), 64)
	if err != nil {
		return 0, invalid("%s must be a finite number, got %s", path(d.json.StackPointer()), quote(string(literal)))
	}
	return n, nil
}

// wrong reads a value of the wrong type and returns the refusal.
func (d *decoder) wrong(want string, kind jsontext.Kind) error {
	if err := d.json.SkipValue(); err != nil {
		return d.notNumber(err)
	}
	return invalid("%s must be %s, got %s", path(d.json.StackPointer()), want, inWords(kind))
}

// notNumber refuses what some programs write into JSON for a number that is not
// finite. It returns err if that is not what the body has.
func (d *decoder) notNumber(err error) error {
	rest := strings.TrimLeft(d.text[d.json.InputOffset():], " \t\r\n:,")
	for _, literal := range []string{"NaN", "Infinity", "-Infinity"} {
		if strings.HasPrefix(rest, literal) {
			d.notFinite = true
			return invalid("%s must be a finite number, got %s", path(d.json.StackPointer()), literal)
		}
	}
	return err
}

// source returns the text of the value just read, cut from the copy of the
// body.
func (d *decoder) source(v jsontext.Value) string {
	end := int(d.json.InputOffset())
	return d.text[end-len(v) : end]
}

// unquote returns the content of the string just read.
func (d *decoder) unquote(v jsontext.Value) string {
	s := d.source(v)
	if strings.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	// The decoder accepted the string. The only possible error is half a
	// surrogate pair, which becomes U+FFFD.
	plain, _ := jsontext.AppendUnquote(nil, v)
	return string(plain)
}

// path writes a JSON pointer as a path: items[2].id.
func path(p jsontext.Pointer) string {
	var text strings.Builder
	for token := range p.Tokens() {
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			text.WriteString("[" + token + "]")
		case text.Len() == 0:
			text.WriteString(token)
		default:
			text.WriteString("." + token)
		}
	}
	if text.Len() == 0 {
		return "the body"
	}
	return text.String()
}

func parent(p jsontext.Pointer) jsontext.Pointer { return p.Parent() }

// inWords names a kind of JSON value.
func inWords(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	default:
		return "null"
	}
}
