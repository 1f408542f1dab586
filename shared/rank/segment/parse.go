package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/wire"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Parse decodes a condition from the JSON value of "where". Every error is a
// *fault.Error that names the place, such as where.and[1].filter.
func Parse(where []byte) (Condition, error) {
	p := parser{}
	c, err := p.condition("where", bytes.TrimSpace(where), 1)
	if err != nil {
		return Condition{}, err
	}
	if p.filters > maxFilters {
		return Condition{}, invalid("where must have at most %d filters, got %d", maxFilters, p.filters)
	}
	if bounded, _ := c.bounded(); !bounded {
		return Condition{}, invalid("where must be bounded by a filter that holds: only a scan of all users could " +
			"answer a \"not\" by itself, or an \"or\" with a \"not\" in it")
	}
	return c, nil
}

type parser struct{ filters int }

// condition decodes the condition at path, which is at a depth.
func (p *parser) condition(path string, b []byte, depth int) (Condition, error) {
	fields, err := object(path, b)
	if err != nil {
		return Condition{}, err
	}
	var kinds []string
	for _, f := range fields {
		switch f.name {
		case "filter", "and", "or", "not":
			kinds = append(kinds, f.name)
		case "halfLife", "above":
		default:
			return Condition{}, invalid("Unknown field %s in %s: want filter with halfLife and above, or one of and, or, not", strconv.Quote(f.name), path)
		}
	}
	if len(kinds) != 1 {
		return Condition{}, invalid("%s must have exactly one of filter, and, or, not, got %s", path, list(kinds))
	}
	if depth > maxDepth {
		return Condition{}, invalid("%s is deeper than %d levels, counting the filter itself", path, maxDepth)
	}
	if kinds[0] == "filter" {
		return p.filter(path, fields)
	}
	if len(fields) > 1 {
		return Condition{}, invalid("%s must not have halfLife or above beside %s: they belong to a filter", path, kinds[0])
	}
	at, value := path+"."+kinds[0], fields[0].value
	if kinds[0] == "not" {
		c, err := p.condition(at, value, depth+1)
		return Condition{Not: &c}, err
	}
	all, err := p.conditions(at, value, depth+1)
	if kinds[0] == "and" {
		return Condition{And: all}, err
	}
	return Condition{Or: all}, err
}

func list(kinds []string) string {
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, " and ")
}

func (p *parser) conditions(path string, b []byte, depth int) ([]Condition, error) {
	var values []json.RawMessage
	if err := json.Unmarshal(b, &values); err != nil || values == nil {
		return nil, invalid("%s must be a list of conditions, got %s", path, kindOf(b))
	}
	if len(values) == 0 {
		return nil, invalid("%s must have at least one condition", path)
	}
	all := make([]Condition, len(values))
	for i, v := range values {
		var err error
		if all[i], err = p.condition(fmt.Sprintf("%s[%d]", path, i), v, depth); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p *parser) filter(path string, fields []field) (Condition, error) {
	var f Filter
	for _, field := range fields {
		at := path + "." + field.name
		switch field.name {
		case "filter":
			var text string
			if err := json.Unmarshal(field.value, &text); err != nil || kindOf(field.value) != "a string" {
				return Condition{}, invalid("%s must be a string such as \"brand:Nike\", got %s", at, kindOf(field.value))
			}
			parsed, err := event.ParseFilter(text)
			if err != nil {
				return Condition{}, invalid("%s is no filter such as \"brand:Nike\": %s", at,
					strings.TrimPrefix(err.Error(), "read a filter: "))
			}
			f.Filter = parsed
		case "halfLife":
			if err := json.Unmarshal(field.value, &f.HalfLife); err != nil {
				return Condition{}, invalid("%s must be one of the strategy's halfLives, got %s", at, short(field.value))
			}
		case "above":
			var above *float64
			if err := json.Unmarshal(field.value, &above); err != nil || above == nil || !(*above >= 0) ||
				math.IsInf(*above, 0) {
				return Condition{}, invalid("%s must be a number of 0 or more, got %s", at, short(field.value))
			}
			f.Above = *above
		}
	}
	p.filters++
	return Condition{Filter: &f}, nil
}

type field struct {
	name  string
	value json.RawMessage
}

// object decodes the fields of an object, in their order.
func object(path string, b []byte) ([]field, error) {
	if kindOf(b) != "an object" {
		return nil, invalid("%s must be an object, got %s", path, kindOf(b))
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	var fields []field
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = decoder.Token(); err != nil {
			break
		}
		err = decoder.Decode(&value)
		text, _ := name.(string)
		if slices.ContainsFunc(fields, func(f field) bool { return f.name == text }) {
			return nil, invalid("Duplicate field %s in %s", strconv.Quote(text), path)
		}
		fields = append(fields, field{text, value})
	}
	if err == nil {
		_, err = decoder.Token()
	}
	if err == nil && len(bytes.TrimSpace(b[decoder.InputOffset():])) > 0 {
		err = fmt.Errorf("more than one value")
	}
	if err != nil {
		return nil, fault.New(fault.Malformed, "%s is not valid JSON: %v", path, err)
	}
	return fields, nil
}

func kindOf(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func short(b []byte) string {
	const most = 40
	text := strings.ToValidUTF8(string(b), "?")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// bounded reports whether filters that hold bound the users of a condition, and whether
// they bound the users for whom it does not hold.
func (c Condition) bounded() (users, others bool) {
	switch {
	case c.Filter != nil:
		return true, false
	case c.Not != nil:
		users, others = c.Not.bounded()
		return others, users
	}
	// Of an and one branch is enough, and all must bound the others; of an or, the reverse.
	all, one := true, false
	for _, branch := range slices.Concat(c.And, c.Or) {
		u, o := branch.bounded()
		if c.And == nil {
			u, o = o, u
		}
		one, all = one || u, all && o
	}
	if c.And == nil {
		return all, one
	}
	return one, all
}

// MarshalJSON writes the condition as Parse reads it.
func (c Condition) MarshalJSON() ([]byte, error) {
	if f := c.Filter; f != nil {
		w := struct {
			Filter   string             `json:"filter"`
			HalfLife *strategy.HalfLife `json:"halfLife,omitempty"`
			Above    float64            `json:"above"`
		}{Filter: f.Facet + event.Operator + f.Value, Above: f.Above}
		// Parse decodes what is percent-encoded.
		w.Filter = strings.ReplaceAll(w.Filter, "%", "%25")
		if !f.HalfLife.IsZero() {
			w.HalfLife = &f.HalfLife
		}
		return json.Marshal(w)
	}
	return json.Marshal(struct {
		And []Condition `json:"and,omitempty"`
		Or  []Condition `json:"or,omitempty"`
		Not *Condition  `json:"not,omitempty"`
	}{c.And, c.Or, c.Not})
}

// Compile prepares a condition for a strategy, whose aliases it applies. The error, if
// a half-life is not one of the strategy's, is a *fault.Error.
func (c Condition) Compile(s strategy.Strategy) (*Query, error) {
	q := &Query{First: -1}
	root, err := q.compile("where", c, s, false)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("identify a condition: %w", err)
	}
	for _, t := range q.Terms {
		text = fmt.Appendf(text, "%d %g %s:%s,", t.HalfLife, t.Decay.halfLife, t.Facet, t.Value)
	}
	q.root, q.where = root, wire.Checksum(text)
	q.Whole = !q.root.needs(q.First)
	return q, nil
}

func (q *Query) compile(path string, c Condition, s strategy.Strategy, negated bool) (node, error) {
	if f := c.Filter; f != nil {
		if n, events := f.HalfLife.Events(); events {
			return node{}, invalid("%s.halfLife must be a time, got %ge: scores by number of events have no order that lasts", path, n)
		}
		at, err := strategy.HalfLifeAt(s.HalfLives, f.HalfLife)
		if err != nil {
			return node{}, invalid("%s.%s", path, err.Error())
		}
		t := Term{Filter: event.Filter{Facet: f.Facet, Value: s.Alias(f.Facet, f.Value)}, HalfLife: at, Above: f.Above}
		t.Decay = decaysOf(s.HalfLives)[at]
		if !negated && q.First < 0 {
			q.First = len(q.Terms)
		}
		q.Terms = append(q.Terms, t)
		return node{term: len(q.Terms) - 1}, nil
	}
	if c.Not != nil {
		child, err := q.compile(path+".not", *c.Not, s, !negated)
		return node{op: opNot, children: []node{child}}, err
	}
	n, name, branches := node{op: opAnd}, "and", c.And
	if c.And == nil {
		n.op, name, branches = opOr, "or", c.Or
	}
	for i, branch := range branches {
		child, err := q.compile(fmt.Sprintf("%s.%s[%d]", path, name, i), branch, s, negated)
		if err != nil {
			return node{}, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

// needs reports whether the node holds for no user for whom a term does not.
func (n node) needs(term int) bool {
	switch n.op {
	case opTerm:
		return n.term == term
	case opAnd:
		return slices.ContainsFunc(n.children, func(c node) bool { return c.needs(term) })
	case opOr:
		return !slices.ContainsFunc(n.children, func(c node) bool { return !c.needs(term) })
	}
	return false // of a not nothing is sure here
}
