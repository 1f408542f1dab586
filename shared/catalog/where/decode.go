package where

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Decode reads a condition from JSON: a string in the form that Parse reads, or an object
// with exactly one of "and" and "or", which hold lists of conditions, "not" with a
// condition, and "filter" with facet:value, whose value needs no quotes, or a comparison
// such as "price < 50". null and nothing hold for all objects. Every error is a
// *fault.Error that names the place, such as where.and[1].filter.
func Decode(b []byte) (Condition, error) {
	b = bytes.TrimSpace(b)
	if err := fits(len(b)); err != nil {
		return Condition{}, err
	}
	if len(b) == 0 || string(b) == "null" {
		return Condition{}, nil
	}
	if b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return Condition{}, invalid("where is no valid JSON: %v", err)
		}
		return Parse(text)
	}
	p := &parser{}
	c, err := p.decode("where", b, 1)
	if err != nil {
		return Condition{}, err
	}
	return c, p.limit()
}

func (p *parser) decode(path string, b []byte, depth int) (Condition, error) {
	if depth > maxDepth {
		return Condition{}, invalid("%s is deeper than %d levels", path, maxDepth)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil || len(fields) != 1 {
		return Condition{}, invalid(`%s must be an object with exactly one of "and", "or", "not" and "filter"`, path)
	}
	for name, value := range fields {
		at := path + "." + name
		switch name {
		case "and":
			return p.decodeList(and, at, value, depth)
		case "or":
			return p.decodeList(or, at, value, depth)
		case "not":
			c, err := p.decode(at, value, depth+1)
			return Condition{op: not, parts: []Condition{c}}, err
		case "filter":
			p.leaves++
			return decodeLeaf(at, value)
		}
		return Condition{}, invalid(`%s has the unknown field %s: want one of "and", "or", "not" and "filter"`, path,
			strconv.Quote(shortened(name)))
	}
	return Condition{}, nil
}

func (p *parser) decodeList(kind op, at string, b []byte, depth int) (Condition, error) {
	var values []json.RawMessage
	if err := json.Unmarshal(b, &values); err != nil || len(values) == 0 {
		return Condition{}, invalid("%s must be a list with at least one condition", at)
	}
	c := Condition{op: kind}
	for i, value := range values {
		part, err := p.decode(fmt.Sprintf("%s[%d]", at, i), value, depth+1)
		if err != nil {
			return Condition{}, err
		}
		c.parts = append(c.parts, part)
	}
	return c, nil
}

// decodeLeaf reads a filter, or a comparison if a sign comes before any colon.
func decodeLeaf(at string, b []byte) (Condition, error) {
	var text string
	if err := json.Unmarshal(b, &text); err != nil || text == "" {
		return Condition{}, invalid(`%s must be a text such as "brand:Nike" or "price < 50"`, at)
	}
	if n := strings.IndexAny(text, ":<>=!"); n > 0 && text[n] == ':' {
		c, err := carried(text[:n], text[n+1:], n+1)
		if err != nil {
			return Condition{}, invalid("%s must have a value after the colon, such as brand:Nike", at)
		}
		return c, nil
	}
	c, err := Parse(text)
	if err != nil || c.op != within && c.op != differs {
		return Condition{}, invalid(`%s must be a filter such as "brand:Nike" or a comparison such as "price < 50", got %s`,
			at, strconv.Quote(shortened(text)))
	}
	return c, nil
}
