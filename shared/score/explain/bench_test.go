package explain_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/explain"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// BenchmarkAdd adds events that all contribute, far more than are listed.
func BenchmarkAdd(b *testing.B) {
	x := explain.New(explain.Question{
		Window: affinity.Window{Now: now}, StrategyVersion: 1, Facet: "color", Value: "Red", Limit: 1000,
		Strategy: strategy.Strategy{
			EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 1}},
			FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 1}}, HalfLives: strategy.InDays(30),
		},
	})
	e := affinity.Event{Time: now, Type: event.View, Name: "Seen"}
	for i := range 10 {
		e.Counts = append(e.Counts, affinity.Count{Facet: fmt.Sprint("f", i), Value: "v", N: 1})
	}
	e.Counts = append(e.Counts, affinity.Count{Facet: "color", Value: "Red", N: 1})
	original := []byte(fmt.Sprintf(`{"receivedAt":%d,"index":"products","event":{"eventType":"view","eventName":"Seen","index":"products",`+
		`"userToken":"some-user-token","timestamp":%d,"objectIDs":["P1234"],"queryID":"43b15df305339e827f0ac0bdc5ebcaa7"}}`, now, now))
	b.ReportAllocs()
	for b.Loop() {
		x.Add(explain.Logged{Event: e, Receipt: e.Time, Original: original})
	}
}
