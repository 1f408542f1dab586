package ranking

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"unsafe"

	"github.com/affinityengine/affinity/shared/event"
)

// seed hashes facets and filters. Hashes stay in the process.
var seed = maphash.MakeSeed()

// Object holds the filters of an object, prepared for ranking under any
// strategy. It is immutable, so rankings may share it.
type Object struct {
	text   string // facets and values, one after the other
	facets []facetOf
	values []valueOf
}

// facetOf is a facet of an object with the end of its values.
type facetOf struct {
	hash  uint64
	name  span
	until int32 // end of its values in Object.values
}

type valueOf struct {
	hash uint64 // of facet and value
	name span
}

// span is a part of Object.text.
type span struct{ start, end uint32 }

func (s span) of(text string) string { return text[s.start:s.end] }

// Compile prepares the filters of an object. Their order does not matter, and a
// filter that occurs twice counts once.
func Compile(filters []event.Filter) *Object {
	sorted := slices.Clone(filters)
	slices.SortFunc(sorted, compareFilters)
	sorted = slices.Compact(sorted)

	var text strings.Builder
	add := func(s string) span {
		start := text.Len()
		text.WriteString(s)
		return span{uint32(start), uint32(text.Len())}
	}
	o := &Object{values: make([]valueOf, 0, len(sorted))}
	for i, f := range sorted {
		if i == 0 || sorted[i-1].Facet != f.Facet {
			o.facets = append(o.facets, facetOf{hash: hashText(f.Facet), name: add(f.Facet)})
		}
		facet := &o.facets[len(o.facets)-1]
		o.values = append(o.values, valueOf{hash: hashFilter(facet.hash, f.Value), name: add(f.Value)})
		facet.until = int32(len(o.values))
	}
	o.facets = slices.Clip(o.facets)
	o.text = strings.Clone(text.String())
	return o
}

// Size returns the memory that o takes, in bytes.
func (o *Object) Size() int {
	return int(unsafe.Sizeof(*o)) + len(o.text) +
		cap(o.facets)*int(unsafe.Sizeof(facetOf{})) + cap(o.values)*int(unsafe.Sizeof(valueOf{}))
}

// Len returns the number of filters. A nil object has none.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.values)
}

// Carries reports whether the object has a filter. A nil object has none.
func (o *Object) Carries(f event.Filter) bool {
	if o == nil {
		return false
	}
	hash, start := hashText(f.Facet), int32(0)
	for _, facet := range o.facets {
		if facet.hash == hash && facet.name.of(o.text) == f.Facet {
			return slices.ContainsFunc(o.values[start:facet.until], func(v valueOf) bool { return v.name.of(o.text) == f.Value })
		}
		start = facet.until
	}
	return false
}

// Filters returns the object's filters, by facet and then value. A nil object
// has none.
func (o *Object) Filters() []event.Filter {
	if o == nil {
		return nil
	}
	filters := make([]event.Filter, 0, len(o.values))
	for _, f := range o.facets {
		for _, v := range o.values[len(filters):f.until] {
			filters = append(filters, event.Filter{Facet: f.name.of(o.text), Value: v.name.of(o.text)})
		}
	}
	return filters
}

func hashText(s string) uint64 { return maphash.String(seed, s) }

// hashFilter hashes a value with the hash of its facet. Tables compare texts too,
// so two filters may have one hash.
func hashFilter(facet uint64, value string) uint64 { return facet*31 + hashText(value) }

func compareFilters(a, b event.Filter) int {
	return cmp.Or(strings.Compare(a.Facet, b.Facet), strings.Compare(a.Value, b.Value))
}
