// Package schema holds how an event lies in the cells of a row of the log, in
// either of two schemas, and in which of them an app's log lies.
//
//	narrow   one cell an event: family the event's type, qualifier its name,
//	         value the list of its filters
//	wide     one cell for each facet: family e, qualifier type,name,facet as CSV,
//	         value the list of the facet's filters
//
// A narrow row is read as fast as a row can be and whole; of a wide one only the
// facets that a strategy scores need to travel. Values are JSON, legible in every
// tool, or compact; either is told apart when it is read, so that one log may
// hold both.
//
// It is apart from the store because it knows no Bigtable: it turns events into
// cells and back, in memory, and keeps nothing.
package schema

import (
	"fmt"
	"slices"
)

// Name is that of a schema.
type Name string

// The schemas there are.
const (
	Narrow Name = "narrow"
	Wide   Name = "wide"
)

// Names are all schemas.
var Names = []Name{Narrow, Wide}

// Parse returns the schema of a name; the error names those there are.
func Parse(s string) (Name, error) {
	if n := Name(s); slices.Contains(Names, n) {
		return n, nil
	}
	return "", fmt.Errorf("schema %q does not exist: there are narrow and wide", s)
}

// Other is the other one.
func (n Name) Other() Name {
	if n == Narrow {
		return Wide
	}
	return Narrow
}

// Encoding is how values are written.
type Encoding string

// The encodings there are.
const (
	JSON    Encoding = "json"
	Compact Encoding = "compact"
)

// ParseEncoding returns the encoding of a name; the error names those there are.
func ParseEncoding(s string) (Encoding, error) {
	switch e := Encoding(s); e {
	case JSON, Compact:
		return e, nil
	}
	return "", fmt.Errorf("encoding %q does not exist: there are json and compact", s)
}

// Layout is how the log of an app lies.
type Layout struct {
	// Write are the schemas that every event is written in, Read the one of them
	// that is read.
	Write []Name
	Read  Name
	// Encoding is that of the values which are written from now on.
	Encoding Encoding
	// Generation counts the changes of Write and Read. Whoever has acted under one
	// layout and finds another generation afterwards cannot know what has happened
	// in between, even where the layout is the same again.
	Generation int64
}

// Default is the layout of an app that says nothing of it.
func Default() Layout { return Of(Wide) }

// Of is the layout of one schema: narrow begins with values that are legible,
// wide, which saves what need not travel, with compact ones.
func Of(n Name) Layout {
	if n == Narrow {
		return Layout{Write: []Name{Narrow}, Read: Narrow, Encoding: JSON}
	}
	return Layout{Write: []Name{n}, Read: n, Encoding: Compact}
}

// Validate says what is wrong with a layout.
func (l Layout) Validate() error {
	for i, n := range l.Write {
		if _, err := Parse(string(n)); err != nil {
			return err
		}
		if slices.Contains(l.Write[:i], n) {
			return fmt.Errorf("schema %s is to be written twice", n)
		}
	}
	if !l.Writes(l.Read) {
		return fmt.Errorf("schema %q is to be read and not written", l.Read)
	}
	_, err := ParseEncoding(string(l.Encoding))
	return err
}

// Writes tells whether every event is written in a schema.
func (l Layout) Writes(n Name) bool { return slices.Contains(l.Write, n) }

// Covers tells whether what was written under this layout is all that another
// asks for.
func (l Layout) Covers(o Layout) bool {
	return !slices.ContainsFunc(o.Write, func(n Name) bool { return !l.Writes(n) })
}

// Equal tells whether two layouts are the same; the order of Write means nothing.
func (l Layout) Equal(o Layout) bool {
	return l.Read == o.Read && l.Encoding == o.Encoding && l.Covers(o) && o.Covers(l)
}
