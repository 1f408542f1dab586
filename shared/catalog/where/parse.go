package where

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Parse reads the text form of a condition. AND binds more tightly than OR, NOT more than
// both; parentheses group. A value or an attribute with spaces, parentheses or quotes
// stands in double quotes, in which \ precedes a quote or a \. A comparison is one of
// < <= = != >= > and a number, or attribute:10 TO 50, which includes both. Empty text holds
// for all objects. Every error is a *fault.Error that names the place.
func Parse(text string) (Condition, error) {
	if err := fits(len(text)); err != nil {
		return Condition{}, err
	}
	if !utf8.ValidString(text) {
		return Condition{}, invalid("where is not valid UTF-8")
	}
	tokens, err := split(text)
	if err != nil || len(tokens) == 1 {
		return Condition{}, err
	}
	p := &parser{tokens: tokens}
	c, err := p.either(1)
	if err != nil {
		return Condition{}, err
	}
	if t := p.peek(); t.kind != ended {
		return Condition{}, t.unexpected("AND, OR or the end")
	}
	return c, p.limit()
}

func fits(bytes int) error {
	if bytes > maxText {
		return invalid("where has %d bytes, at most %d are accepted", bytes, maxText)
	}
	return nil
}

type parser struct {
	tokens []token // the last one is ended
	leaves int
}

func (p *parser) limit() error {
	if p.leaves > maxLeaves {
		return invalid("where must have at most %d filters and comparisons, got %d", maxLeaves, p.leaves)
	}
	return nil
}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) take() token {
	t := p.tokens[0]
	if t.kind != ended {
		p.tokens = p.tokens[1:]
	}
	return t
}

// takes takes the next token if it is a word of the language.
func (p *parser) takes(word string) bool {
	if p.peek().is(word) {
		p.take()
		return true
	}
	return false
}

func (p *parser) either(depth int) (Condition, error) { return p.list(or, "OR", depth, p.both) }

func (p *parser) both(depth int) (Condition, error) { return p.list(and, "AND", depth, p.one) }

// list reads parts with a word between them.
func (p *parser) list(kind op, word string, depth int, part func(int) (Condition, error)) (Condition, error) {
	first, err := part(depth)
	if err != nil || !p.peek().is(word) {
		return first, err
	}
	all := []Condition{first}
	for p.takes(word) {
		next, err := part(depth)
		if err != nil {
			return Condition{}, err
		}
		all = append(all, next)
	}
	return Condition{op: kind, parts: all}, nil
}

func (p *parser) one(depth int) (Condition, error) {
	t := p.peek()
	switch {
	case depth > maxDepth:
		return Condition{}, invalid("where is deeper than %d levels at byte %d", maxDepth, t.at)
	case p.takes("NOT"):
		c, err := p.one(depth + 1)
		return Condition{op: not, parts: []Condition{c}}, err
	case t.kind == opened:
		p.take()
		c, err := p.either(depth + 1)
		if err != nil {
			return Condition{}, err
		}
		if end := p.take(); end.kind != closed {
			return Condition{}, end.unexpected("a )")
		}
		return c, nil
	case t.kind == word && !t.reserved():
		p.take()
		p.leaves++
		return p.leaf(t)
	}
	return Condition{}, t.unexpected(`a filter such as brand:Nike or a comparison such as price < 50`)
}

// leaf reads what follows an attribute.
func (p *parser) leaf(attribute token) (Condition, error) {
	switch t := p.take(); t.kind {
	case colon:
		value := p.take()
		if value.kind != word {
			return Condition{}, value.unexpected("a value after the colon; put one with spaces or signs in double quotes")
		}
		if p.takes("TO") {
			return p.between(attribute, value)
		}
		return carried(attribute.text, value.text, attribute.at)
	case sign:
		n, err := p.number(p.take())
		return comparison(attribute.text, t.text, n), err
	default:
		return Condition{}, t.unexpected("a colon or one of < <= = != >= > after " + strconv.Quote(attribute.text))
	}
}

func (p *parser) between(attribute, from token) (Condition, error) {
	low, err := p.number(from)
	if err != nil {
		return Condition{}, err
	}
	high, err := p.number(p.take())
	if err == nil && low > high {
		err = invalid("where at byte %d: a range from %g to %g is empty: write the lower number first", from.at, low, high)
	}
	return Condition{op: within, compared: attribute.text, low: bound{true, low, true}, high: bound{true, high, true}}, err
}

func (p *parser) number(t token) (float64, error) {
	n, err := strconv.ParseFloat(t.text, 64)
	if t.kind != word || t.quoted || err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, t.unexpected("a number such as 50 or 19.90")
	}
	return n, nil
}

func carried(facet, value string, at int) (Condition, error) {
	f := event.Filter{Facet: facet, Value: value}
	if f.Facet == "" || f.Value == "" {
		return Condition{}, invalid("where at byte %d: a filter needs a facet and a value, such as brand:Nike", at)
	}
	return Condition{op: carries, filter: f}, nil
}

func comparison(attribute, sign string, n float64) Condition {
	b := bound{true, n, strings.HasSuffix(sign, "=")}
	c := Condition{op: within, compared: attribute}
	switch sign[0] {
	case '<':
		c.high = b
	case '>':
		c.low = b
	case '!':
		c.op, c.low = differs, b
	default:
		c.low, c.high = b, b
	}
	return c
}
