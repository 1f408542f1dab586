package event

import "strings"

// Types is a set of types of events. It is stored, so the bits must not change.
type Types uint8

// The types that a set may hold: those of events that the engine keeps.
const (
	Views Types = 1 << iota
	Clicks
	Conversions
	AllTypes = Views | Clicks | Conversions
)

// TypesOf returns the set of some types. It returns false if one of them is no type of
// events that the engine keeps.
func TypesOf(types ...Type) (Types, bool) {
	var set Types
	for _, t := range types {
		bit := bitOf(t)
		if bit == 0 {
			return 0, false
		}
		set |= bit
	}
	return set, true
}

func bitOf(t Type) Types {
	switch t {
	case View:
		return Views
	case Click:
		return Clicks
	case Conversion:
		return Conversions
	}
	return 0
}

// Has reports whether the set holds a type.
func (s Types) Has(t Type) bool { return s&bitOf(t) != 0 }

// List returns the types of the set.
func (s Types) List() []Type {
	list := []Type{}
	for _, t := range [...]Type{View, Click, Conversion} {
		if s.Has(t) {
			list = append(list, t)
		}
	}
	return list
}

// String lists the types of the set.
func (s Types) String() string {
	var names []string
	for _, t := range s.List() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}
