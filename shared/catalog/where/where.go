// Package where holds conditions on catalog objects: which objects of an index a
// request wants. It reads two forms of one condition:
//
//	brand:Nike AND (price < 50 OR NOT color:"dark red")
//	{"and":[{"filter":"brand:Nike"},{"or":[{"filter":"price < 50"},{"not":{"filter":"color:dark red"}}]}]}
//
// A condition is of filters, which an object carries or not, and of comparisons of a
// number of its record. An object whose record lacks the attribute meets no comparison, so
// NOT price < 50 holds for it.
//
// The package does no I/O and keeps no data: the caller says what an object has.
package where

import (
	"slices"

	"github.com/affinityengine/affinity/shared/event"
)

// Limits of a condition.
const (
	maxText   = 8 << 10 // bytes, of either form
	maxLeaves = 100     // filters and comparisons
	maxDepth  = 10      // levels; a filter alone has one
)

// Condition is a condition on an object. The zero value holds for all objects.
type Condition struct {
	op       op
	parts    []Condition // of and, or, not
	filter   event.Filter
	compared string // the attribute of a comparison
	low      bound
	high     bound
}

type op int

const (
	always op = iota
	and
	or
	not
	carries // the object carries filter
	within  // a number of compared lies between low and high
	differs // no number of compared is low
)

// bound is an end of a range of numbers.
type bound struct {
	given     bool
	number    float64
	inclusive bool
}

// Object is what a condition asks of an object.
type Object interface {
	// Carries reports whether the object has a filter.
	Carries(f event.Filter) bool
	// Numbers returns the numbers of an attribute, a dotted path into the record; none if
	// the record has none.
	Numbers(attribute string) []float64
}

// Everything reports whether the condition holds for all objects.
func (c Condition) Everything() bool { return c.op == always }

// Holds reports whether an object meets the condition.
func (c Condition) Holds(o Object) bool {
	holds := func(part Condition) bool { return part.Holds(o) }
	switch c.op {
	case and:
		return !slices.ContainsFunc(c.parts, func(part Condition) bool { return !part.Holds(o) })
	case or:
		return slices.ContainsFunc(c.parts, holds)
	case not:
		return !c.parts[0].Holds(o)
	case carries:
		return o.Carries(c.filter)
	case within:
		return slices.ContainsFunc(o.Numbers(c.compared), c.contains)
	case differs:
		numbers := o.Numbers(c.compared)
		return len(numbers) > 0 && !slices.Contains(numbers, c.low.number)
	}
	return true
}

func (c Condition) contains(n float64) bool {
	above := !c.low.given || n > c.low.number || c.low.inclusive && n == c.low.number
	below := !c.high.given || n < c.high.number || c.high.inclusive && n == c.high.number
	return above && below
}

// Attributes returns the attributes whose numbers the condition asks for, each once, sorted.
// Without any the filters of an object decide.
func (c Condition) Attributes() []string {
	var all []string
	c.each(func(leaf Condition) {
		if leaf.compared != "" {
			all = append(all, leaf.compared)
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// Required returns filters that each object that meets the condition carries. An index by
// filter finds these objects in the shortest of their lists.
func (c Condition) Required() []event.Filter {
	switch c.op {
	case carries:
		return []event.Filter{c.filter}
	case and:
		var all []event.Filter
		for _, part := range c.parts {
			all = append(all, part.Required()...)
		}
		return all
	}
	return nil
}

// each calls fn with the filters and comparisons.
func (c Condition) each(fn func(Condition)) {
	if c.op >= carries {
		fn(c)
	}
	for _, part := range c.parts {
		part.each(fn)
	}
}
