package catalog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/event"
)

// limits are what an attribute may hold to have filters. An attribute that
// holds more has none: some of its values alone would describe the object
// wrongly.
type limits struct {
	valueBytes int // of each value
	values     int // distinct values
}

var (
	// unset applies to an index without settings. It excludes descriptions,
	// addresses of pictures and lists of IDs.
	unset = limits{valueBytes: 100, values: 100}
	// declared applies to attributes that the settings name. It keeps an event
	// within the size of a row of the log.
	declared = limits{valueBytes: 1000, values: 1000}
)

// Limits of all filters of one object. They keep an event of twenty objects
// within the size of a message and of a row of the log.
const (
	maxFilters     = 1000
	maxFilterBytes = 64 << 10 // facets and values together
)

// maxDepth is how deep a value may be nested in objects and lists. Deeper
// values have no filters.
const maxDepth = 50

// Filters returns the filters of a record, which must be a JSON object: one
// filter for each distinct value of each attribute that is a facet, sorted by
// facet and then value.
//
// The name of a facet is the dotted path of the attribute, such as
// categories.lvl0. A list has the values of its elements: tags.name has the
// names in a list of tags. If a key contains a dot, its path can be the same as
// that of a nested attribute; the attribute with fewer keys counts.
//
// A value is a string, true, false, or a number as it is written in the record.
// null and empty strings give no filter.
//
// With settings, the attributes that they name are facets. Such an attribute
// may have at most 1,000 distinct values of 1,000 bytes each. Without settings,
// every attribute but objectID is a facet if it has at most 100 distinct values
// of 100 bytes each. An attribute that exceeds a limit has no filters. An
// object has at most 1,000 filters of 64 KiB together; attributes that exceed
// this, in the order of their paths, have no filters.
//
// A facet with numeric bands has the names of the bands that hold its values. A value
// that is no number, and no string that holds one as JSON writes it, gives no filter
// there.
//
// An error means that the record is not a JSON object.
func Filters(record []byte, s Settings) ([]event.Filter, error) {
	return countedFilters(record, s, &Left{})
}

// Left counts what of records gives no filters, by facet. A map without counts is nil.
type Left struct {
	// NotNumbers counts the values of a facet with numeric bands that are no numbers.
	NotNumbers map[string]int
	// Dropped counts the objects that exceed the limits of a facet that the settings name,
	// and have no filters of it.
	Dropped map[string]int
}

// Add adds the counts of further records.
func (l *Left) Add(further Left) {
	for facet, n := range further.NotNumbers {
		increase(&l.NotNumbers, facet, n)
	}
	for facet, n := range further.Dropped {
		increase(&l.Dropped, facet, n)
	}
}

func increase(counts *map[string]int, facet string, n int) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[facet] += n
}

// countedFilters is Filters. It also counts what gives none.
func countedFilters(record []byte, s Settings, left *Left) ([]event.Filter, error) {
	c := collector{
		dec:        jsontext.NewDecoder(bytes.NewBuffer(record), lenient),
		limits:     unset,
		attributes: make(map[string]*attribute),
		bands:      s.NumericBands,
	}
	if s.AttributesForFaceting != nil {
		c.limits, c.declared = declared, declaredPaths(s.AttributesForFaceting)
	}
	if err := c.record(); err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	return c.filters(left), nil
}

// declaredPaths maps the path of each declared attribute to true, and the paths
// of the attributes around it to false.
func declaredPaths(attributesForFaceting []string) map[string]bool {
	paths := make(map[string]bool)
	for _, entry := range attributesForFaceting {
		path := facet(entry)
		for i := range len(path) {
			if path[i] == '.' && !paths[path[:i]] {
				paths[path[:i]] = false
			}
		}
		paths[path] = true
	}
	return paths
}

// collector collects the values of a record by attribute in one pass.
type collector struct {
	dec        *jsontext.Decoder
	limits     limits
	declared   map[string]bool // nil: every attribute is a facet
	attributes map[string]*attribute
	bands      Bands
	path       []byte // path of the value that is read
}

// attribute holds the values of a record under one path.
type attribute struct {
	keys       int // number of keys in the path
	values     []string
	tooLong    bool // a value is too long
	notNumbers int  // values of an attribute with bands that are in none
}

func (c *collector) record() error {
	kind := c.dec.PeekKind()
	if kind != jsontext.KindInvalid && kind != jsontext.KindBeginObject {
		return errNotObject
	}
	if err := c.object(0); err != nil {
		return err
	}
	return atEnd(c.dec)
}

// value reads the value at the path. keys is the number of keys in the path.
func (c *collector) value(keys int) error {
	kind := c.dec.PeekKind()
	nested := kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray
	switch {
	case nested && c.dec.StackDepth() >= maxDepth:
		return c.dec.SkipValue()
	case kind == jsontext.KindBeginObject:
		return c.object(keys)
	case kind == jsontext.KindBeginArray:
		return c.array(keys)
	}
	token, err := c.dec.ReadToken()
	if err != nil {
		return err
	}
	c.add(token, keys)
	return nil
}

func (c *collector) object(keys int) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return err
	}
	parent := len(c.path)
	for c.dec.PeekKind() != jsontext.KindEndObject {
		name, err := c.dec.ReadToken()
		if err != nil {
			return err
		}
		if keys > 0 {
			c.path = append(c.path, '.')
		}
		c.path = append(c.path, name.String()...)
		if c.skips(keys + 1) {
			err = c.dec.SkipValue()
		} else {
			err = c.value(keys + 1)
		}
		if err != nil {
			return err
		}
		c.path = c.path[:parent]
	}
	_, err := c.dec.ReadToken()
	return err
}

func (c *collector) array(keys int) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return err
	}
	for c.dec.PeekKind() != jsontext.KindEndArray {
		if err := c.value(keys); err != nil {
			return err
		}
	}
	_, err := c.dec.ReadToken()
	return err
}

// skips reports whether no attribute at or below the path can be a facet.
func (c *collector) skips(keys int) bool {
	if len(c.path) > MaxFacet {
		return true
	}
	if c.declared != nil {
		_, ok := c.declared[string(c.path)]
		return !ok
	}
	return keys == 1 && string(c.path) == objectID
}

// add adds a scalar to the attribute at the path.
func (c *collector) add(token jsontext.Token, keys int) {
	if len(c.path) == 0 || c.declared != nil && !c.declared[string(c.path)] {
		return
	}
	a := c.attributes[string(c.path)]
	if a == nil || keys < a.keys {
		a = &attribute{keys: keys}
		c.attributes[string(c.path)] = a
	}
	if keys > a.keys || token.Kind() == jsontext.KindNull {
		return
	}
	text := token.String()
	if _, banded := c.bands[string(c.path)]; banded && text != "" {
		a.addNumber(c.bands, string(c.path), text)
		return
	}
	switch {
	case text == "":
	case len(text) > c.limits.valueBytes:
		a.tooLong = true
	default:
		a.values = append(a.values, text)
	}
}

// addNumber adds the band of a number to an attribute.
func (a *attribute) addNumber(bands Bands, path, text string) {
	if n, ok := number(text); ok {
		a.values = append(a.values, bands.Of(path, n))
	} else {
		a.notNumbers++
	}
}

// filters returns the filters of the attributes that are within the limits, and counts what
// gives none.
func (c *collector) filters(left *Left) []event.Filter {
	var filters []event.Filter
	size := 0
	for _, path := range slices.Sorted(maps.Keys(c.attributes)) {
		a := c.attributes[path]
		if a.notNumbers > 0 {
			increase(&left.NotNumbers, path, a.notNumbers)
		}
		slices.Sort(a.values)
		a.values = slices.Compact(a.values)
		added := 0 // bytes
		for _, value := range a.values {
			added += len(path) + len(value)
		}
		if a.tooLong || len(a.values) > c.limits.values || len(filters)+len(a.values) > maxFilters ||
			size+added > maxFilterBytes {
			if c.declared != nil {
				increase(&left.Dropped, path, 1)
			}
			continue
		}
		size += added
		for _, value := range a.values {
			filters = append(filters, event.Filter{Facet: path, Value: value})
		}
	}
	return filters
}
