package event

import (
	"bytes"
	"strings"
	"sync"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// parser reads one body token by token. It records a value of the wrong type,
// skips it, and continues to the end of the event. Only truncated JSON or a
// batch that is too large stops it with an error.
type parser struct {
	dec     *jsontext.Decoder
	body    []byte
	text    string // the body; all strings of the events are cut from it
	rules   Rules
	draft   draft    // the current event
	field   string   // of the event, which is being read
	member  string   // of the field, if that is a list of objects; else empty
	strings []string // backs the events' lists of objectIDs
	events  []Event
	times   [][2]int // of an event of history: where its timestamps begin and end
	refused *Refusal // the first bad event, or the fault of the body
}

// typicalEvent estimates an event's size in bytes, to preallocate the results.
const typicalEvent = 150

// parsers are kept for the next bodies: one takes more memory than a small event.
var parsers = sync.Pool{New: func() any { return &parser{dec: jsontext.NewDecoder(nothing)} }}

// lenient: names may repeat (the last one counts). An escape may be half a surrogate pair: JavaScript writes that for a
// string cut within a character. The caller has checked that the bytes of the body are UTF-8.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

var nothing = strings.NewReader("")

// close gives the parser back.
func (p *parser) close() {
	p.dec.Reset(nothing)
	*p = parser{dec: p.dec} // lets go of the body
	parsers.Put(p)
}

// newParser returns a parser of a body that nobody modifies from then on: the
// decoder reads a bytes.Buffer in place without writing into it, and the strings of
// the events share the body's memory, which a copy would double.
func newParser(body []byte, r Rules, expected int) *parser {
	p := parsers.Get().(*parser)
	p.dec.Reset(bytes.NewBuffer(body), lenient...)
	p.body, p.text, p.rules = body, unsafe.String(unsafe.SliceData(body), len(body)), r
	p.strings, p.events = make([]string, 0, expected), make([]Event, 0, expected)
	return p
}

// object reads the next value, an object. It calls field with the name of each
// member, and field reads the member's value.
func (p *parser) object(field func(p *parser, name string) error) error {
	_, err := p.objectAt(field)
	return err
}

// objectAt is object, and returns the offset at which the object starts.
func (p *parser) objectAt(field func(p *parser, name string) error) (int64, error) {
	if _, err := p.dec.ReadToken(); err != nil {
		return 0, err
	}
	start := p.dec.InputOffset() - 1
	for p.dec.PeekKind() != jsontext.KindEndObject {
		name, err := p.dec.ReadValue()
		if err != nil {
			return 0, err
		}
		if err := field(p, p.unquote(name)); err != nil {
			return 0, err
		}
	}
	_, err := p.dec.ReadToken()
	return start, err
}

// array reads the next value, an array, and calls element for each element. It
// treats null as an empty array.
func (p *parser) array(element func(p *parser) error) error {
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindBeginArray:
	case jsontext.KindNull:
		return p.dec.SkipValue()
	default:
		return p.wrongType("array", kind)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	for p.dec.PeekKind() != jsontext.KindEndArray {
		if err := element(p); err != nil {
			return err
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// wrongType records that want was expected, and skips the value.
func (p *parser) wrongType(want string, got jsontext.Kind) error {
	p.noteType(want, got)
	return p.dec.SkipValue()
}

// noteType records that a value is not what was expected, if it is the first such value. Like
// the API, the message names the path "events" for every field; in a file it names the field.
func (p *parser) noteType(want string, got jsontext.Kind) {
	if p.draft.typeFault != "" {
		return
	}
	p.draft.wrong = p.field
	if p.member != "" {
		p.draft.wrong += "." + p.member
	}
	named := "events"
	if p.rules.History {
		named = p.draft.wrong
	}
	p.draft.typeFault = typeMessage(named, want, got)
}

// optionalString reads a string into dst. It reads null as "".
func (p *parser) optionalString(dst *string) error {
	*dst = ""
	if p.dec.PeekKind() == jsontext.KindNull {
		return p.dec.SkipValue()
	}
	return p.string(dst)
}

func (p *parser) string(dst *string) error {
	if kind := p.dec.PeekKind(); kind != jsontext.KindString {
		return p.wrongType("string", kind)
	}
	quoted, err := p.dec.ReadValue()
	if err == nil {
		*dst = p.unquote(quoted)
	}
	return err
}

// number reads a number's literal into dst.
func (p *parser) number(dst *string) error {
	if kind := p.dec.PeekKind(); kind != jsontext.KindNumber {
		return p.wrongType("number", kind)
	}
	literal, err := p.dec.ReadValue()
	if err == nil {
		*dst = p.source(literal)
	}
	return err
}

// scalar reads a number or a string into dst. null and "" leave it absent.
func (p *parser) scalar(dst *scalar) error {
	*dst = scalar{}
	switch kind := p.dec.PeekKind(); kind {
	case jsontext.KindNull:
		return p.dec.SkipValue()
	case jsontext.KindNumber:
		var literal string
		if err := p.number(&literal); err != nil {
			return err
		}
		*dst = scalar{kind: scalarNumber, number: float(literal)}
		return nil
	case jsontext.KindString:
		if err := p.string(&dst.text); err != nil {
			return err
		}
		if dst.text != "" {
			dst.kind = scalarString
		}
		return nil
	default:
		return p.wrongType("number or string", kind)
	}
}

// source returns the text of the value just read, cut from the body.
func (p *parser) source(v jsontext.Value) string {
	end := int(p.dec.InputOffset())
	return p.text[end-len(v) : end]
}

// unquote returns the content of the string just read.
func (p *parser) unquote(v jsontext.Value) string {
	s := p.source(v)
	if strings.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	// The decoder accepted the string, so the only possible error is half a
	// surrogate pair, which becomes U+FFFD.
	plain, _ := jsontext.AppendUnquote(nil, v)
	return string(plain)
}
