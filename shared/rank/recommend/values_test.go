package recommend_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/recommend"
)

// Two objects that rise a little show more of their brand than one that rises as much as each.
func TestValuesRiseTogether(t *testing.T) {
	of := func(brand string) []event.Filter {
		return []event.Filter{{Facet: "brand", Value: brand}, {Facet: "color", Value: "red"}}
	}
	values := recommend.Values{Facet: "brand"}
	for brand, trends := range map[string][]float64{"Anker": {0.5}, "Nike": {0.5, 0.5}, "Acme": {0.5}, "Best": {1}} {
		for _, trend := range trends {
			values.Add(of(brand), trend)
		}
	}
	want := []recommend.Value{{Value: "Best", Score: 1}, {Value: "Nike", Score: math.Sqrt2 / 2}, {Value: "Acme", Score: 0.5},
		{Value: "Anker", Score: 0.5}}
	if diff := cmp.Diff(want, values.Sorted(), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if none := (&recommend.Values{Facet: "brand"}).Sorted(); len(none) > 0 {
		t.Errorf("of no objects: %v", none)
	}
}
