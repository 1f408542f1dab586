package importer

import (
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// list returns a function that returns the objects of a list.
func (s *Source) list() func() (line, error) {
	decoder := jsontext.NewDecoder(s.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	begun := false
	return func() (line, error) {
		if !begun {
			begun = true
			if _, err := decoder.ReadToken(); err != nil {
				return line{}, err
			}
		}
		if decoder.PeekKind() == jsontext.KindEndArray {
			return line{}, io.EOF
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return line{}, fmt.Errorf("after object %d of the list: %w", s.last, err)
		}
		if err := value.Compact(); err != nil { // a line has no line breaks
			return line{}, err
		}
		l := line{number: s.last + 1, text: value}
		if len(value) > maxLine {
			l.tooLong, l.text = true, nil
		}
		return l.checked(), nil
	}
}

// spread reads on in an object that is written over several lines, as `jq .` writes it:
// white space begins those within it, and } is the last one. Else the first line is bad,
// and no other.
func (s *Source) spread(first line) (line, error) {
	text := []byte("{")
	for {
		l, err := s.physical()
		if err != nil && err != io.EOF {
			return line{}, err
		}
		within := err == nil && !l.tooLong && len(l.text) > 0 && len(text)+len(l.text) < maxLine
		switch {
		case within && l.text[0] == '}' && len(bytes.TrimSpace(l.text)) == 1:
			object := jsontext.Value(append(text, '}'))
			if err := object.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
				return line{number: first.number, fault: fmt.Sprintf("lines %d to %d are no JSON object: %v", first.number,
					l.number, err)}, nil
			}
			return line{number: first.number, text: object}.checked(), nil
		case within && (l.text[0] == ' ' || l.text[0] == '\t'):
			text = append(append(text, '\n'), l.text...)
			continue
		case err == nil:
			l.text = bytes.Clone(l.text)
			s.back = &l
		}
		return line{number: first.number, fault: "an object begins here, and no line } ends it"}, nil
	}
}
