package rank

import (
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// cut reads the candidates of a body in the form that programs write, and returns
// the body with an empty list in their place. ok is false if anything about the
// list is wrong or unusual, such as an escape or an unknown key: the decoder then
// reads the whole body. The decoder would take several times as long for the list,
// which is nearly all of a body.
func cut(body string, candidates *candidateList) (rest string, ok bool) {
	s := scanner{text: body}
	if !s.take('{') {
		return "", false
	}
	for {
		name, ok := s.plain()
		if !ok || !s.take(':') {
			return "", false
		}
		s.space()
		start := s.at
		switch {
		case name != "objectIDs" && name != "items" || strings.HasPrefix(body[start:], "null"):
			if !s.value() {
				return "", false
			}
		case !s.list(name == "items", candidates):
			return "", false
		default:
			return body[:start] + "[]" + body[s.at:], true
		}
		if !s.take(',') {
			return "", false
		}
	}
}

// scanner reads JSON from a text. Its methods report whether the text goes on as
// they expect.
type scanner struct {
	text string
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\r' ||
		s.text[s.at] == '\t') {
		s.at++
	}
}

// take takes a character, and white space around it.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// plain takes a string without escapes.
func (s *scanner) plain() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	for start := s.at; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start : s.at-1], true
		case c == '\\' || c < ' ':
			return "", false
		}
	}
	return "", false
}

// value takes a scalar, a list of strings such as exclude, or an object of scalars such as a
// diversity: the decoder reads it again.
func (s *scanner) value() bool {
	switch {
	case strings.HasPrefix(s.text[s.at:], "["):
		return s.texts()
	case !strings.HasPrefix(s.text[s.at:], "{"):
		return s.scalar()
	}
	s.at++
	if s.take('}') {
		return true
	}
	for {
		if _, ok := s.plain(); !ok || !s.take(':') {
			return false
		}
		if s.space(); !s.scalar() {
			return false
		}
		if !s.take(',') {
			return s.take('}')
		}
	}
}

// texts takes a list of strings without escapes.
func (s *scanner) texts() bool {
	s.at++
	if s.take(']') {
		return true
	}
	for {
		if _, ok := s.plain(); !ok {
			return false
		}
		if !s.take(',') {
			return s.take(']')
		}
	}
}

// scalar takes a string without escapes, or what may be a number or a literal:
// the decoder reads it again.
func (s *scanner) scalar() bool {
	if s.at < len(s.text) && s.text[s.at] == '"' {
		_, ok := s.plain()
		return ok
	}
	n := strings.IndexAny(s.text[s.at:], ",}")
	if n <= 0 || strings.ContainsAny(s.text[s.at:s.at+n], `"[{:`) {
		return false
	}
	s.at += n
	return true
}

// list takes the list of candidates.
func (s *scanner) list(items bool, into *candidateList) bool {
	if !s.take('[') {
		return false
	}
	if s.take(']') {
		return true
	}
	for n := 1; n <= api.MaxCandidates; n++ {
		var c ranking.Candidate
		var ok bool
		if items {
			ok = s.item(&c)
		} else {
			c.ObjectID, ok = s.plain()
		}
		if !ok || c.ObjectID == "" || len(c.ObjectID) > catalog.MaxObjectID {
			return false
		}
		into.add(c)
		if !s.take(',') {
			return s.take(']')
		}
	}
	return false
}

// item takes {"id":"A","fields":[{"name":"relevancy","value":2.0}]}, with the keys
// in this order. fields may be absent or empty.
func (s *scanner) item(c *ranking.Candidate) (ok bool) {
	if !s.take('{') || !s.key("id") {
		return false
	}
	if c.ObjectID, ok = s.plain(); !ok {
		return false
	}
	if s.take('}') {
		return true
	}
	if !s.take(',') || !s.key("fields") || !s.take('[') {
		return false
	}
	if s.take(']') {
		return s.take('}')
	}
	if !s.take('{') || !s.key("name") {
		return false
	}
	if name, ok := s.plain(); !ok || name != api.FieldRelevancy || !s.take(',') || !s.key("value") {
		return false
	}
	c.HasRelevancy = true
	c.Relevancy, ok = s.number()
	return ok && s.take('}') && s.take(']') && s.take('}')
}

func (s *scanner) key(want string) bool {
	name, ok := s.plain()
	return ok && name == want && s.take(':')
}

// number takes a finite number.
func (s *scanner) number() (float64, bool) {
	s.space()
	start := s.at
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	whole := s.digits()
	if whole == 0 || whole > 1 && s.text[s.at-whole] == '0' {
		return 0, false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		if s.at++; s.digits() == 0 {
			return 0, false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' { // an exponent is rare
		return 0, false
	}
	n, err := strconv.ParseFloat(s.text[start:s.at], 64)
	return n, err == nil
}

// digits takes digits and counts them.
func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' < 10 {
		s.at++
	}
	return s.at - start
}
