// Package schema is how an event is stored in the cells of a row of the log, in
// either of two schemas, and which of them an app's log has.
//
//	narrow   one cell an event: family the event's type, qualifier its name,
//	         value the list of its filters
//	wide     one cell for each facet: family e, qualifier type,name,facet as CSV,
//	         value the list of the facet's filters
//
// A narrow row is read as fast as a row can be, and always whole; of a wide row
// only the facets that a strategy scores are transferred. Values are JSON,
// which every tool can show, or compact. A reader recognizes either, so one log
// may hold both. Rows of both schemas also have the cell m:event, the event as
// it was sent (see Original).
//
// The package is separate from the store because it knows no Bigtable: it
// encodes events into cells and decodes them, in memory, and keeps nothing.
package schema

import (
	"fmt"
	"slices"
)

// Name is the name of a schema.
type Name string

// The schemas.
const (
	Narrow Name = "narrow"
	Wide   Name = "wide"
)

// Names are all schemas.
var Names = []Name{Narrow, Wide}

// Parse returns the schema of a name; the error lists the schemas.
func Parse(s string) (Name, error) {
	if n := Name(s); slices.Contains(Names, n) {
		return n, nil
	}
	return "", fmt.Errorf("schema %q does not exist: there are narrow and wide", s)
}

// Other returns the other schema.
func (n Name) Other() Name {
	if n == Narrow {
		return Wide
	}
	return Narrow
}

// Encoding is how values are written.
type Encoding string

// The encodings.
const (
	JSON    Encoding = "json"
	Compact Encoding = "compact"
)

// ParseEncoding returns the encoding of a name; the error lists the encodings.
func ParseEncoding(s string) (Encoding, error) {
	switch e := Encoding(s); e {
	case JSON, Compact:
		return e, nil
	}
	return "", fmt.Errorf("encoding %q does not exist: there are json and compact", s)
}

// Layout is how an app's log is stored.
type Layout struct {
	// Write are the schemas in which every event is written. Read is the one of
	// them that reads use.
	Write []Name
	Read  Name
	// Encoding is the encoding of new values.
	Encoding Encoding
	// Generation counts the changes of Write and Read. A process that worked
	// under one layout and then finds another generation cannot know what
	// happened in between, even if Write and Read are the same again.
	Generation int64
}

// Default is the layout of an app that does not set one.
func Default() Layout { return Of(Wide) }

// Of returns the layout of one schema: narrow starts with JSON values, which
// are legible; wide, which saves transfer, with compact ones.
func Of(n Name) Layout {
	if n == Narrow {
		return Layout{Write: []Name{Narrow}, Read: Narrow, Encoding: JSON}
	}
	return Layout{Write: []Name{n}, Read: n, Encoding: Compact}
}

// Validate returns an error that says what is wrong with a layout.
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

// Writes reports whether every event is written in a schema.
func (l Layout) Writes(n Name) bool { return slices.Contains(l.Write, n) }

// Covers reports whether writing under this layout writes every schema that
// another layout writes.
func (l Layout) Covers(o Layout) bool {
	return !slices.ContainsFunc(o.Write, func(n Name) bool { return !l.Writes(n) })
}

// Equal reports whether two layouts are the same. The order of Write has no
// meaning.
func (l Layout) Equal(o Layout) bool {
	return l.Read == o.Read && l.Encoding == o.Encoding && l.Covers(o) && o.Covers(l)
}
