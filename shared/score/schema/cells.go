package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// FamilyWide is the family that holds all filters of a wide row.
const FamilyWide = "e"

// Families returns the families of a schema that hold filters.
func (n Name) Families() []string {
	if n == Wide {
		return []string{FamilyWide}
	}
	return []string{string(event.View), string(event.Click), string(event.Conversion)}
}

// Cell is one cell of an event's row.
type Cell struct {
	Family, Qualifier string
	Value             []byte
}

// Column is the meaning of a column's family and qualifier.
type Column struct {
	Type, Name string
	Facet      string // of a wide column
}

// Encoder makes the cells of events. It is not safe for concurrent use.
type Encoder struct {
	schema     Name
	encoding   Encoding
	qualifiers map[Column]string
	counts     []affinity.Count
}

// NewEncoder makes an encoder for rows of a schema.
func NewEncoder(n Name, e Encoding) *Encoder {
	return &Encoder{schema: n, encoding: e, qualifiers: map[Column]string{}}
}

// maxQualifiers bounds the cache of an encoder.
const maxQualifiers = 4096

// Append appends the cells of an event to cells. An event without filters has
// no cells in a wide row. Append writes only counts that can be read: it leaves
// out counts below 0, which add nothing, and writes counts above 1<<31 as
// 1<<31.
func (e *Encoder) Append(cells []Cell, typ event.Type, name string, counts []affinity.Count) []Cell {
	counts = e.normalize(counts)
	if e.schema == Narrow {
		value := make([]byte, 0, sizeNarrow(counts, e.encoding))
		return append(cells, Cell{string(typ), name, appendNarrow(value, counts, e.encoding)})
	}
	values := make([]byte, 0, sizeWide(counts, e.encoding))
	for len(counts) > 0 {
		n := sameFacet(counts)
		start := len(values)
		values = appendWide(values, counts[:n], e.encoding)
		qualifier := e.qualifier(Column{string(typ), name, counts[0].Facet})
		cells = append(cells, Cell{FamilyWide, qualifier, values[start:len(values):len(values)]})
		counts = counts[n:]
	}
	return cells
}

// normalize returns the counts that can be read, sorted by facet and otherwise
// in the given order. Counts from a stored row are normalized already.
func (e *Encoder) normalize(counts []affinity.Count) []affinity.Count {
	if isNormalized(counts) {
		return counts
	}
	e.counts = e.counts[:0]
	for _, c := range counts {
		if c.N >= 0 {
			c.N = min(c.N, maxCount)
			e.counts = append(e.counts, c)
		}
	}
	slices.SortStableFunc(e.counts, func(a, b affinity.Count) int { return cmp.Compare(a.Facet, b.Facet) })
	return e.counts
}

func isNormalized(counts []affinity.Count) bool {
	for i := range counts {
		if n := counts[i].N; n < 0 || n > maxCount || i > 0 && counts[i].Facet < counts[i-1].Facet {
			return false
		}
	}
	return true
}

func sameFacet(counts []affinity.Count) int {
	n := 1
	for n < len(counts) && counts[n].Facet == counts[0].Facet {
		n++
	}
	return n
}

func (e *Encoder) qualifier(c Column) string {
	q, ok := e.qualifiers[c]
	if !ok {
		if len(e.qualifiers) >= maxQualifiers {
			clear(e.qualifiers)
		}
		q = Qualifier(c.Type, c.Name, c.Facet)
		e.qualifiers[c] = q
	}
	return q
}

// Qualifier returns the qualifier of the wide column of one facet of one type
// and name of event: CSV of three fields, RFC 4180.
func Qualifier(typ, name, facet string) string {
	return csvField(typ) + "," + csvField(name) + "," + csvField(facet)
}

func csvField(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// ParseColumn reads the family and qualifier of a column of either schema.
func ParseColumn(family, qualifier string) (Column, error) {
	if family != FamilyWide {
		if slices.Contains(Narrow.Families(), family) {
			return Column{Type: family, Name: qualifier}, nil
		}
		return Column{}, fmt.Errorf("family %q holds no filters", family)
	}
	var fields [3]string
	var err error
	rest, more := qualifier, true
	for i := range fields {
		if !more {
			return Column{}, fmt.Errorf("column %q: want three CSV fields", qualifier)
		}
		if fields[i], rest, more, err = cutCSV(rest); err != nil {
			return Column{}, fmt.Errorf("column %q: %w", qualifier, err)
		}
	}
	if more {
		return Column{}, fmt.Errorf("column %q: more than three CSV fields", qualifier)
	}
	return Column{fields[0], fields[1], fields[2]}, nil
}

func cutCSV(s string) (field, rest string, more bool, err error) {
	if !strings.HasPrefix(s, `"`) {
		field, rest, more = strings.Cut(s, ",")
		return field, rest, more, nil
	}
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			i++
			continue
		}
		field = strings.ReplaceAll(s[1:i], `""`, `"`)
		if i+1 == len(s) {
			return field, "", false, nil
		}
		if s[i+1] == ',' {
			return field, s[i+2:], true, nil
		}
		break
	}
	return "", "", false, errors.New("quotes do not close where the field ends")
}

// EachCount calls fn for every filter in the value of a cell of a family, in
// either encoding. facet is nil for a wide cell, whose column names it. The
// bytes are valid until fn returns. If the value is damaged, fn may have been
// called before EachCount returns the error.
func EachCount(family string, value []byte, fn func(facet, value []byte, n int)) error {
	if family == FamilyWide {
		return eachWide(value, fn)
	}
	return eachNarrow(value, fn)
}
