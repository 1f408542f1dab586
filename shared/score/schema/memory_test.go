package schema_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// TestMemory: EachCount reads values of the encoder without allocations, and
// the encoder allocates once for an event whose qualifiers it has cached.
func TestMemory(t *testing.T) {
	red, blue := affinity.Count{Facet: "color", Value: "Rouge foncé", N: 1}, affinity.Count{Facet: "color", Value: "Blue", N: 20}
	small := affinity.Count{Facet: "size", Value: "S", N: 1}
	eachForm(func(n schema.Name, e schema.Encoding, name string) {
		for order, counts := range map[string][]affinity.Count{"sorted": {red, blue, small}, "not sorted": {small, red, blue}} {
			encoder := schema.NewEncoder(n, e)
			cells := encoder.Append(nil, event.View, "a", counts)
			filters := 0
			count := func(_, _ []byte, n int) { filters += n }
			if allocs := testing.AllocsPerRun(100, func() {
				for _, cell := range cells {
					must.Succeed(t, schema.EachCount(cell.Family, cell.Value, count))
				}
			}); allocs > 0 || filters == 0 {
				t.Errorf("%s: %v allocations to read %d filters", name, allocs, filters)
			}
			if allocs := testing.AllocsPerRun(100, func() { cells = encoder.Append(cells[:0], event.View, "a", counts) }); allocs != 1 {
				t.Errorf("%s, %s: %v allocations to write", name, order, allocs)
			}
		}
	})
}

// TestEscapes: a text with escapes costs its own size, in a list of any length.
func TestEscapes(t *testing.T) {
	allocs := func(filters int) float64 {
		counts := make([]affinity.Count, filters)
		for i := range counts {
			counts[i] = affinity.Count{Facet: "size", Value: "27", N: 1}
		}
		counts[0].Value = `27" wide`
		cell := schema.NewEncoder(narrow, schema.JSON).Append(nil, event.View, "a", counts)[0]
		return testing.AllocsPerRun(10, func() {
			must.Succeed(t, schema.EachCount(cell.Family, cell.Value, func(_, _ []byte, _ int) {}))
		})
	}
	if few, many := allocs(1), allocs(1000); many > few {
		t.Errorf("%v allocations where 1 filter is read, %v where 1000 are", few, many)
	}
}

func TestEncoderKeepsFewQualifiers(t *testing.T) {
	encoder := schema.NewEncoder(wide, schema.Compact)
	most := 0
	for i := range 2*schema.MostQualifiers + 100 {
		facet := fmt.Sprint(i)
		cells := encoder.Append(nil, event.View, "a", []affinity.Count{{Facet: facet, Value: "v", N: 1}})
		if want := "view,a," + facet; cells[0].Qualifier != want {
			t.Fatalf("column %q, want %q", cells[0].Qualifier, want)
		}
		most = max(most, encoder.Qualifiers())
	}
	if most != schema.MostQualifiers {
		t.Errorf("%d qualifiers are kept, want %d", most, schema.MostQualifiers)
	}
}
