package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/event"
)

var (
	facetMember  = []byte(`{"facetName":`)
	valueMember  = []byte(`,"facetValue":`)
	countMember  = []byte(`,"count":`)
	operatorItem = []byte(`["` + event.Operator + `",`)
)

// narrowJSON reads [{"facetName":"color","facetValue":"Red","count":1},...]. If
// the JSON has another form than appendNarrow writes, encoding/json reads the
// rest.
func narrowJSON(b []byte, fn func(facet, value []byte, n int)) error {
	s, seen := scanner{b: b}, 0
	for s.item(seen) {
		s.literal(facetMember)
		facet := s.string()
		s.literal(valueMember)
		value := s.string()
		s.literal(countMember)
		n := s.count()
		s.byte('}')
		if s.failed {
			break
		}
		fn(facet, value, n)
		seen++
	}
	if !s.failed {
		return nil
	}
	var list []struct {
		FacetName, FacetValue *string
		Operator              *string
		Count                 *int
	}
	if err := strict(b, &list); err != nil {
		return err
	}
	for i, c := range list {
		if c.FacetName == nil || c.FacetValue == nil || c.Count == nil || *c.Count < 0 || *c.Count > maxCount {
			return fmt.Errorf("filter count %d: want facetName, facetValue and count: %w", i, errCounts)
		}
		if c.Operator != nil && *c.Operator != event.Operator {
			return ErrNewer
		}
		if i >= seen {
			fn([]byte(*c.FacetName), []byte(*c.FacetValue), *c.Count)
		}
	}
	return nil
}

// wideJSON reads [[":","Red",1],...], as narrowJSON does.
func wideJSON(b []byte, fn func(facet, value []byte, n int)) error {
	s, seen := scanner{b: b}, 0
	for s.item(seen) {
		s.literal(operatorItem)
		value := s.string()
		s.byte(',')
		n := s.count()
		s.byte(']')
		if s.failed {
			break
		}
		fn(nil, value, n)
		seen++
	}
	if !s.failed {
		return nil
	}
	var list [][]json.RawMessage
	if err := strict(b, &list); err != nil {
		return err
	}
	for i, c := range list {
		var operator, value *string
		var n *int
		if len(c) != 3 || !decode(c[0], &operator) || !decode(c[1], &value) || !decode(c[2], &n) || *n < 0 || *n > maxCount {
			return fmt.Errorf("filter count %d: want operator, value and count: %w", i, errCounts)
		}
		if *operator != event.Operator {
			return ErrNewer
		}
		if i >= seen {
			fn(nil, []byte(*value), *n)
		}
	}
	return nil
}

// decode reports whether it could read a value other than null.
func decode[T any](b []byte, into **T) bool {
	return json.Unmarshal(b, into) == nil && *into != nil
}

// strict decodes a whole JSON text and rejects unknown members.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errCounts, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: something follows the list", errCounts)
	}
	return nil
}

// scanner reads JSON in exactly one form: no blanks, members in order, integer
// counts.
type scanner struct {
	b      []byte
	next   int
	failed bool
}

// item moves to the next item of the list and reports whether the list has one.
// The end of the list must be the end of the text.
func (s *scanner) item(read int) bool {
	if read == 0 {
		s.byte('[')
	}
	if s.failed || s.next >= len(s.b) {
		s.failed = true
		return false
	}
	switch c := s.b[s.next]; {
	case c == ']':
		s.next++
		s.failed = s.next != len(s.b)
		return false
	case read == 0:
		return true
	case c == ',':
		s.next++
		return true
	}
	s.failed = true
	return false
}

func (s *scanner) byte(c byte) {
	if s.failed || s.next >= len(s.b) || s.b[s.next] != c {
		s.failed = true
		return
	}
	s.next++
}

func (s *scanner) literal(l []byte) {
	if s.failed || !bytes.HasPrefix(s.b[s.next:], l) {
		s.failed = true
		return
	}
	s.next += len(l)
}

// string reads a string. Its bytes are part of the text unless it has escapes
// or is not UTF-8, which encoding/json replaces.
func (s *scanner) string() []byte {
	s.byte('"')
	start, plain, all := s.next, true, byte(0)
	for i := start; i < len(s.b) && !s.failed; i++ {
		c := s.b[i]
		all |= c
		switch {
		case c == '"':
			s.next = i + 1
			if plain && (all < utf8.RuneSelf || utf8.Valid(s.b[start:i])) {
				return s.b[start:i]
			}
			var text string
			s.failed = json.Unmarshal(s.b[start-1:i+1], &text) != nil
			return []byte(text)
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			s.failed = true
		}
	}
	s.failed = true
	return nil
}

// count reads a number of 1 to 9 digits.
func (s *scanner) count() int {
	n, start := 0, s.next
	for s.next < len(s.b) && s.b[s.next] >= '0' && s.b[s.next] <= '9' && s.next-start < 10 {
		n = n*10 + int(s.b[s.next]-'0')
		s.next++
	}
	if digits := s.next - start; digits == 0 || digits > 9 || digits > 1 && s.b[start] == '0' {
		s.failed = true
	}
	return n
}
