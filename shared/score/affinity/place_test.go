package affinity_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TestPlacesAreThoseOfTheScorer: scorers that take turns with the same places, drop
// their values or refuse some find what a scorer without places finds.
func TestPlacesAreThoseOfTheScorer(t *testing.T) {
	s := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "a", Score: 1}, {FacetName: "b", Score: 2}}}
	s.Aliases = map[string]map[string]string{"a": {"value 3": "value 4", "value 5": "elsewhere"}}
	c := affinity.Compile(s)
	w := affinity.Window{Now: affinitytest.Now}
	plain := affinity.NewScorer(c, w)
	share := affinity.NewMemory(affinity.Hold{Values: 1, Bytes: 1}, affinity.Hold{Values: 9, Bytes: 1 << 20}).Share()
	held := affinity.NewScorer(c, w)
	held.Hold(share)
	scorers := []*affinity.Scorer{affinity.NewScorer(c, w), affinity.NewScorer(c, w), held}
	var text []byte
	var ends [20]int
	for i := range ends {
		text = fmt.Appendf(text, "value %d", i)
		ends[i] = len(text)
	}
	var places [2][20]affinity.Place
	for user := range 40 {
		plain.Reset(w)
		sc := scorers[user%3]
		sc.Reset(w)
		values := 4 + user%3*2*(user%2) // the third scorer is full with more than 9
		for i := range values * 3 {
			facet, v := (i+user)%2, (i*7+user)%len(ends)
			start := 0
			if v > 0 {
				start = ends[v-1]
			}
			totals := []float64{float64(1 + i)}
			plain.AddTotals(facet, text, start, ends[v], totals)
			sc.AddTotalsAt(&places[facet][v], facet, text, start, ends[v], totals)
		}
		if sc.Full() {
			if sc != held {
				t.Fatalf("user %d: full", user)
			}
			continue
		}
		if diff := cmp.Diff(plain.Profile(), sc.Profile()); diff != "" {
			t.Fatalf("user %d (-without places +with places):\n%s", user, diff)
		}
	}
}

// TestPlacesEndWithTheValues: a scorer drops all values after very many, and then no
// place of theirs is used.
func TestPlacesEndWithTheValues(t *testing.T) {
	c := affinity.Compile(strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "a", Score: 1}}})
	w := affinity.Window{Now: affinitytest.Now}
	sc := affinity.NewScorer(c, w)
	one := []float64{1}
	var first, last affinity.Place
	sc.AddTotalsAt(&first, 0, []byte("first"), 0, 5, one)
	for i := range 1<<16 + 1 {
		sc.AddTotals(0, fmt.Appendf(nil, "%06d", i), 0, 6, one)
	}
	sc.Reset(w)
	sc.AddTotalsAt(&last, 0, []byte("last"), 0, 4, one)
	sc.AddTotalsAt(&first, 0, []byte("first"), 0, 5, one)
	if got := sc.Profile().Affinities; len(got) != 2 || got[0].Value != "first" || got[1].Value != "last" {
		t.Errorf("%+v", got)
	}
}
