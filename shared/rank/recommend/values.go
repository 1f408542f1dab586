package recommend

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// Value is a value of a facet with its trend, divided by the highest: above 0, at most 1.
type Value struct {
	Value string
	Score float64
}

// Values adds up the trends of the values of a facet. The zero Values of a facet has none.
type Values struct {
	Facet string
	of    map[string]trends
}

type trends struct{ sum, objects float64 }

// Add adds an object that rises, by its filters.
func (v *Values) Add(filters []event.Filter, trend float64) {
	if v.of == nil {
		v.of = map[string]trends{}
	}
	for _, f := range filters {
		if f.Facet == v.Facet {
			t := v.of[f.Value]
			v.of[f.Value] = trends{t.sum + trend, t.objects + 1}
		}
	}
}

// Sorted returns the values, the highest trend first. The trend of a value is the sum of those of its objects,
// divided by the root of their number: what independent deviations are together (Stouffer's method).
func (v *Values) Sorted() []Value {
	sorted := make([]Value, 0, len(v.of))
	for value, t := range v.of {
		sorted = append(sorted, Value{value, t.sum / math.Sqrt(t.objects)})
	}
	slices.SortFunc(sorted, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Value, b.Value))
	})
	for i := range slices.Backward(sorted) {
		sorted[i].Score /= sorted[0].Score
	}
	return sorted
}
