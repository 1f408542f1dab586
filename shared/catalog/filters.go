package catalog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/event"
)

// limits are what an attribute may hold to be a facet. One that holds more is
// left out wholly: half of its values would say something false of the object.
type limits struct {
	valueBytes int
	values     int // distinct ones
}

var (
	// unset holds where nobody said which attributes are facets: descriptions,
	// addresses of pictures and lists of ids should not become any.
	unset = limits{valueBytes: 100, values: 100}
	// declared holds for attributes a customer asked for. It only keeps one
	// object from growing an event beyond what the log can hold.
	declared = limits{valueBytes: 1000, values: 1000}
)

// What all attributes of one object may come to. It keeps an event of twenty
// objects within what a message and a row of the log can hold.
const (
	maxFilters     = 1000
	maxFilterBytes = 64 << 10 // of facets and values
)

// maxDepth is how many objects and lists a value may lie in. What lies deeper
// is no facet.
const maxDepth = 50

// Filters returns the filters of a record, which is a JSON object: one for each
// distinct value of each attribute that is a facet under the settings, sorted
// by facet, then value.
//
// An attribute is named by its dotted path: categories.lvl0. Lists stand for
// each of their elements, so that tags.name gathers the names of a list of
// tags. Where a key holds a dot itself and its path is also that of a nested
// attribute, the one with fewer keys counts. Strings are taken as they are, true
// and false by those names, numbers as the record writes them; null and empty
// strings are nothing. Without settings every attribute but objectID is a facet
// if its values have at most 100 bytes each and are at most 100; with settings
// those declared are, up to 1,000 bytes and 1,000 values. An object has at most
// 1,000 filters of 64 KB in all: attributes beyond, in order, are left out.
//
// The error says that the record is no JSON object.
func Filters(record []byte, s Settings) ([]event.Filter, error) {
	c := collector{
		dec:        jsontext.NewDecoder(bytes.NewBuffer(record), lenient),
		limits:     unset,
		attributes: make(map[string]*attribute),
	}
	if s.Version != 0 {
		c.limits, c.declared = declared, declaredPaths(s.AttributesForFaceting)
	}
	if err := c.record(); err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	return c.filters(), nil
}

// declaredPaths maps the declared attributes to true, and the paths that lead
// to them to false.
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

// collector gathers the values of a record by attribute in one pass.
type collector struct {
	dec        *jsontext.Decoder
	limits     limits
	declared   map[string]bool // nil: every attribute is a facet
	attributes map[string]*attribute
	path       []byte // of the value being read
}

// attribute is what a record holds under one path.
type attribute struct {
	keys   int // that the path was made of
	values []string
	broken bool // a value is too long
}

func (c *collector) record() error {
	kind := c.dec.PeekKind()
	if kind != jsontext.KindInvalid && kind != jsontext.KindBeginObject {
		return errNoObject
	}
	if err := c.object(0); err != nil {
		return err
	}
	return atEnd(c.dec)
}

// value reads what lies under the path, which is made of so many keys.
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

// skips tells whether nothing under the path can be a facet.
func (c *collector) skips(keys int) bool {
	if len(c.path) > MaxFacet {
		return true
	}
	if c.declared != nil {
		_, leads := c.declared[string(c.path)]
		return !leads
	}
	return keys == 1 && string(c.path) == objectID
}

// add takes a scalar into the attribute of the path.
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
	switch text := token.String(); {
	case text == "":
	case len(text) > c.limits.valueBytes:
		a.broken = true
	default:
		a.values = append(a.values, text)
	}
}

func (c *collector) filters() []event.Filter {
	var filters []event.Filter
	size := 0
	for _, path := range slices.Sorted(maps.Keys(c.attributes)) {
		a := c.attributes[path]
		slices.Sort(a.values)
		a.values = slices.Compact(a.values)
		if a.broken || len(a.values) > c.limits.values {
			continue
		}
		bytes := 0
		for _, value := range a.values {
			bytes += len(path) + len(value)
		}
		if len(filters)+len(a.values) > maxFilters || size+bytes > maxFilterBytes {
			continue
		}
		size += bytes
		for _, value := range a.values {
			filters = append(filters, event.Filter{Facet: path, Value: value})
		}
	}
	return filters
}
