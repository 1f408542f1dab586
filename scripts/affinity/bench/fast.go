package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// scanner reads the JSON of the narrow schema in exactly the form in which it is written: no blanks, members in order, whole counts.
// What has another form is refused, even if it is JSON that says the same. Strings with escapes or beyond ASCII are left to
// encoding/json.
type scanner struct {
	b    []byte
	next int
	err  error
	text string // memory of strings with escapes
}

var errForm = errors.New("the value is not of the form in which filter counts are written")

var (
	nameMember  = []byte(`{"facetName":`)
	valueMember = []byte(`,"facetValue":`)
	countMember = []byte(`,"count":`)
)

// each calls fn for every item of a list, with bytes that hold only until it returns.
func (s *scanner) each(list []byte, fn func(facet, value []byte, count int)) error {
	s.b, s.next, s.err = list, 0, nil
	s.byte('[')
	if s.next < len(list) && list[s.next] == ']' {
		s.next++
	} else {
		for s.err == nil {
			s.literal(nameMember)
			facet := s.string()
			s.literal(valueMember)
			value := s.string()
			s.literal(countMember)
			count := s.count()
			s.byte('}')
			if s.err != nil {
				break
			}
			fn(facet, value, count)
			if s.next < len(list) && list[s.next] == ',' {
				s.next++
				continue
			}
			s.byte(']')
			break
		}
	}
	if s.err == nil && s.next != len(list) {
		s.fail()
	}
	return s.err
}

func (s *scanner) fail() {
	if s.err == nil {
		s.err = fmt.Errorf("at byte %d: %w", s.next, errForm)
	}
}

func (s *scanner) byte(c byte) {
	if s.next >= len(s.b) || s.b[s.next] != c {
		s.fail()
		return
	}
	s.next++
}

func (s *scanner) literal(l []byte) {
	if !bytes.HasPrefix(s.b[s.next:], l) {
		s.fail()
		return
	}
	s.next += len(l)
}

func (s *scanner) string() []byte {
	s.byte('"')
	start, plain := s.next, true
	for i := start; i < len(s.b) && s.err == nil; i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.next = i + 1
			if plain {
				return s.b[start:i]
			}
			return s.escaped(s.b[start-1 : i+1])
		case c == '\\':
			plain = false
			i++
		case c < ' ' || c >= 0x80:
			plain = false
		}
	}
	s.fail()
	return nil
}

func (s *scanner) escaped(quoted []byte) []byte {
	if json.Unmarshal(quoted, &s.text) != nil {
		s.fail()
		return nil
	}
	return []byte(s.text)
}

// count reads a number of 1 to 9 digits.
func (s *scanner) count() int {
	n, start := 0, s.next
	for s.next < len(s.b) && s.b[s.next] >= '0' && s.b[s.next] <= '9' && s.next-start < 10 {
		n = n*10 + int(s.b[s.next]-'0')
		s.next++
	}
	if digits := s.next - start; digits == 0 || digits > 9 || digits > 1 && s.b[start] == '0' {
		s.fail()
	}
	return n
}
