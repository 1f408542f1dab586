package backtest

import (
	"maps"
	"slices"
	"strings"
)

// facetValues are the values of one facet.
type facetValues struct {
	of     lists // by object: its values
	having lists // by value: its objects, sorted
}

// valuesOf returns the values of a facet.
func (l *Log) valuesOf(facet string) (*facetValues, error) {
	f, number := &facetValues{}, map[int32]int32{}
	var having [][]int32
	for o := range l.objects {
		var values []int32
		for _, filter := range l.carried.at(int32(o)) {
			if l.filters[filter].Facet != facet {
				continue
			}
			v, ok := number[filter]
			if !ok {
				v = int32(len(number))
				number[filter] = v
				having = append(having, nil)
			}
			values = append(values, v)
			having[v] = append(having[v], int32(o))
		}
		f.of.add(values...)
	}
	if len(having) == 0 {
		return nil, refuse("no object of index %q has the attribute %q: they have %s", l.index, facet, l.listFacets())
	}
	for _, objects := range having {
		f.having.add(objects...)
	}
	return f, nil
}

// sharing appends the objects that are not excluded and share a value with one
// of the given objects, in the order of their IDs. It excludes no others when it
// returns.
func (f *facetValues) sharing(with []int32, excluded []bool, to []int32) []int32 {
	for _, o := range with {
		for _, v := range f.of.at(o) {
			for _, candidate := range f.having.at(v) {
				if !excluded[candidate] {
					excluded[candidate] = true
					to = append(to, candidate)
				}
			}
		}
	}
	mark(excluded, to, false)
	slices.Sort(to)
	return to
}

// listed is how many names a message lists.
const listed = 10

func (l *Log) listFacets() string {
	facets := map[string]bool{}
	for _, f := range l.filters {
		facets[f.Facet] = true
	}
	return listNames(slices.Sorted(maps.Keys(facets)))
}

func (l *Log) listKinds() string {
	var names []string
	for _, k := range l.kinds {
		names = append(names, string(k.typ)+" "+k.name)
	}
	slices.Sort(names)
	return listNames(names)
}

func listNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	more := ""
	if len(names) > listed {
		names, more = names[:listed], ", ..."
	}
	return strings.Join(names, ", ") + more
}
