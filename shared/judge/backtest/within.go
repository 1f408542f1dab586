package backtest

import (
	"maps"
	"slices"
	"strings"
)

// facetValues are the values of one facet.
type facetValues struct {
	names  []string
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
				f.names = append(f.names, l.filters[filter].Value)
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

// narrow returns the cases whose relevant objects have a value of a facet, with
// the candidates that Options.Within describes. Cut and statistics are those of
// c. The error is a *fault.Error.
func (c *Cases) narrow(facet string) (*Cases, error) {
	values, err := c.log.valuesOf(facet)
	if err != nil {
		return nil, err
	}
	n := *c
	n.within, n.options.Within, n.cases = values, facet, nil
	for _, in := range c.cases {
		in.relevant = slices.DeleteFunc(slices.Clone(in.relevant), func(o int32) bool { return len(values.of.at(o)) == 0 })
		if len(in.relevant) > 0 {
			n.cases = append(n.cases, in)
		}
	}
	if len(n.cases) == 0 {
		return nil, n.noCase()
	}
	return &n, nil
}

// Within returns the cases within the facet that is asked for, or else within
// the category of the objects (see Options.Within). It returns nil if there are
// none to judge that way and none were asked for. The error is a *fault.Error.
func (c *Cases) Within(asked string) (*Cases, error) {
	switch asked {
	case None:
		return nil, nil
	case "":
		facet := c.log.Category()
		if facet == "" {
			return nil, nil
		}
		found, err := c.narrow(facet)
		if err != nil {
			return nil, nil // no case has a value
		}
		return found, nil
	}
	return c.narrow(asked)
}

// sharing appends the objects that are not excluded and share a value with one
// of the given objects, in the order of their IDs. It excludes no others when it
// returns. picked is all false, before and after.
func (f *facetValues) sharing(with []int32, excluded, picked []bool, to []int32) []int32 {
	var values []int32
	for _, o := range with {
		values = append(values, f.of.at(o)...)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	for _, v := range values {
		for _, candidate := range f.having.at(v) {
			if !excluded[candidate] && !picked[candidate] {
				picked[candidate] = true
				to = append(to, candidate)
			}
		}
	}
	switch {
	case len(values) <= 1: // in order, as the objects of a value are
		mark(picked, to, false)
	case len(to) > len(picked)/scanned:
		to = to[:0]
		for o, is := range picked {
			if is {
				to = append(to, int32(o))
				picked[o] = false
			}
		}
	default:
		mark(picked, to, false)
		slices.Sort(to)
	}
	return to
}

// scanned is how many objects are looked at in the time that sorting takes for one.
const scanned = 16

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
