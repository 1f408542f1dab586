package affinity_test

import (
	"fmt"
	"log"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// A profile adds up, for each filter, event score x facet score x count.
func Example() {
	s, err := strategy.Decode([]byte(`{
		"eventsScoring": [
			{"eventType": "view",       "eventName": "Product Viewed",  "score": 1},
			{"eventType": "click",      "eventName": "Product Clicked", "score": 3},
			{"eventType": "conversion", "eventName": "Product Bought",  "score": 5}
		],
		"facetsScoring": [
			{"facetName": "color", "score": 2},
			{"facetName": "brand", "score": 1}
		],
		"personalizationImpact": 50
	}`))
	if err != nil {
		log.Fatal(err)
	}

	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixMilli()
	did := func(typ event.Type, name string, filters ...event.Filter) affinity.Event {
		e := affinity.Event{Time: now, Type: typ, Name: name}
		for _, f := range filters {
			e.Counts = append(e.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: 1})
		}
		return e
	}
	red, black := event.Filter{Facet: "color", Value: "Red"}, event.Filter{Facet: "color", Value: "Black"}
	brand := func(name string) event.Filter { return event.Filter{Facet: "brand", Value: name} }
	events := []affinity.Event{
		did(event.Conversion, "Product Bought", red, brand("Apple")),
		did(event.Click, "Product Clicked", black, brand("Apple")),
		did(event.View, "Product Viewed", red, brand("Apple")),
		did(event.View, "Product Viewed", black, brand("Apple")),
		did(event.Click, "Product Clicked", brand("Sony")),
		did(event.View, "Product Viewed", brand("Samsung")),
		did(event.View, "Product Viewed", brand("Samsung")),
	}

	window := affinity.Window{Now: now, RetentionDays: 90}
	for _, a := range affinity.Reference(events, s, window).Affinities {
		fmt.Printf("%s:%s %v\n", a.Facet, a.Value, a.Scores[0])
	}
	// Output:
	// color:Red 12
	// brand:Apple 10
	// color:Black 8
	// brand:Sony 3
	// brand:Samsung 2
}

// A Scorer is compiled once per strategy and reset for every user.
func ExampleScorer() {
	compiled := affinity.Compile(strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventType: event.View, EventName: "Article Read", Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "topic", Score: 2}},
		HalfLives:     strategy.InDays(7),
	})
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	window := affinity.Window{Now: now.UnixMilli(), RetentionDays: 90}
	read := func(daysAgo int, topic string) affinity.Event {
		return affinity.Event{
			Time: now.AddDate(0, 0, -daysAgo).UnixMilli(), Type: event.View, Name: "Article Read",
			Counts: []affinity.Count{{Facet: "topic", Value: topic, N: 1}},
		}
	}

	scorer := affinity.NewScorer(compiled, window)
	scorer.AddEvent(read(0, "Tennis"))
	scorer.AddEvent(read(7, "Jazz"))    // one half-life ago
	scorer.AddEvent(read(120, "Chess")) // outside the retention
	for _, a := range scorer.Profile().Affinities {
		fmt.Printf("%s %.1f\n", a.Value, a.Scores[0])
	}

	scorer.Reset(window) // the next user
	fmt.Println(len(scorer.Profile().Affinities), "affinities")
	// Output:
	// Tennis 20.0
	// Jazz 10.0
	// 0 affinities
}

// At decays a stored profile to the time of a read.
func ExampleProfile_At() {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	stored := affinity.Profile{
		Anchor:     now.UnixMilli(),
		HalfLives:  strategy.InDays(30),
		Affinities: []affinity.Affinity{{Facet: "brand", Value: "Apple", Scores: []float64{80}}},
	}
	later := stored.At(now.AddDate(0, 0, 60).UnixMilli()) // two half-lives
	fmt.Println(later.Affinities[0].Scores[0])
	// Output: 20
}

// Scaled gives the form of Algolia's profiles: 1 to 20 per value.
func ExampleProfile_Scaled() {
	s := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "brand", Score: 4}}}
	p := affinity.Profile{Affinities: []affinity.Affinity{
		{Facet: "brand", Value: "Apple", Scores: []float64{800}},
		{Facet: "brand", Value: "Sony", Scores: []float64{200}},
	}}
	fmt.Println(p.Scaled(s))
	// Output: map[brand:map[Apple:20 Sony:5]]
}
