package affinity_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// listed is benchStrategy with a list of allowed values of one facet.
func listed() strategy.Strategy {
	s := benchStrategy(30)
	values := strategy.ValueSet{}
	for i := range 1_000 {
		values[fmt.Sprintf("value number %d", 2*i)] = struct{}{}
	}
	s.AllowedValues = map[string]strategy.ValueSet{"facet1": values}
	return s
}

// A user may have any number of values that are not allowed: a scorer keeps none of them.
func TestValuesThatScoreNothingTakeNoMemory(t *testing.T) {
	race.Skip(t, "it counts allocations")
	sc := affinity.NewScorer(affinity.Compile(listed()), affinity.Window{Now: now})
	kind := benchStrategy().EventsScoring[0]
	e := affinity.Event{Time: now, Type: kind.EventType, Name: kind.EventName, Counts: []affinity.Count{
		{Facet: "facet1", Value: "value number 2", N: 1}, {Facet: "facet4", Value: "N/A", N: 1}, {Facet: "facet1", N: 1},
	}}
	var names []string
	for i := range 2_000 {
		names = append(names, fmt.Sprintf("a value of many letters that is not allowed, number %d", i))
	}
	sc.AddEvent(e)
	i := 0
	if n := testing.AllocsPerRun(len(names)-1, func() {
		e.Counts[2].Value = names[i]
		i++
		sc.AddEvent(e)
	}); n > 0 {
		t.Errorf("%v allocations an event", n)
	}
	if p := sc.Profile(); p.Total != 1 || p.Affinities[0].Value != "value number 2" {
		t.Errorf("profile %+v", p)
	}
}

// BenchmarkScorerAllowed is BenchmarkScorer with a list of 1,000 values, which has half of the
// values of one of the three facets.
func BenchmarkScorerAllowed(b *testing.B) {
	events := benchEvents()
	sc := affinity.NewScorer(affinity.Compile(listed()), affinity.Window{Now: now, RetentionDays: window})
	for _, e := range events {
		sc.AddEvent(e)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		sc.AddEvent(events[i])
		if i++; i == len(events) {
			i = 0
		}
	}
}
