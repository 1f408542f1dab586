// Package schema encodes an event into the cells of a row of the log and
// decodes it. A log has one of two schemas:
//
//	narrow   one cell an event: family the event's type, qualifier its name,
//	         value the list of its filters
//	wide     one cell for each facet: family e, qualifier type,name,facet as CSV,
//	         value the list of the facet's filters
//
// A reader always transfers a narrow row whole, which is fast. From a wide row
// it transfers only the facets that a strategy scores. Values are JSON, which
// every tool can show, or compact. A reader recognizes both encodings, so one
// log may hold both. Rows of both schemas also have two cells of their own family:
// m:event, the event as the app sent it (see Original), and m:o, the kind of the
// event and its objects in short (see Objects).
//
// Pos and BlockID are what keys of a user's rows name.
//
// The package is separate from the store because it does not use Bigtable: it
// works in memory and keeps nothing.
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

// Names lists all schemas.
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

// Encoding is the format of a cell's value.
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

// Layout names the schemas and the encoding of an app's log.
type Layout struct {
	// Writers write every event in each schema of Write. Readers use the schema
	// Read, which Write contains.
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

// Of returns the default layout of a schema. Narrow has JSON values, which are
// legible. Wide has compact values, because it serves to transfer less.
func Of(n Name) Layout {
	if n == Narrow {
		return Layout{Write: []Name{Narrow}, Read: Narrow, Encoding: JSON}
	}
	return Layout{Write: []Name{n}, Read: n, Encoding: Compact}
}

// Validate returns an error for a layout that no log can have.
func (l Layout) Validate() error {
	for i, n := range l.Write {
		if _, err := Parse(string(n)); err != nil {
			return err
		}
		if slices.Contains(l.Write[:i], n) {
			return fmt.Errorf("schema %s is written twice", n)
		}
	}
	if !l.Writes(l.Read) {
		return fmt.Errorf("schema %q is read but not written", l.Read)
	}
	_, err := ParseEncoding(string(l.Encoding))
	return err
}

// Writes reports whether every event is written in a schema.
func (l Layout) Writes(n Name) bool { return slices.Contains(l.Write, n) }

// Covers reports whether l writes every schema that o writes.
func (l Layout) Covers(o Layout) bool {
	return !slices.ContainsFunc(o.Write, func(n Name) bool { return !l.Writes(n) })
}

// Equal reports whether two layouts are the same except for the generation. The
// order of Write has no meaning.
func (l Layout) Equal(o Layout) bool {
	return l.Read == o.Read && l.Encoding == o.Encoding && l.Covers(o) && o.Covers(l)
}
