package history_test

import (
	"fmt"
	"log"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// A Builder packs events, in order of time, into a block.
func ExampleBuilder() {
	b := history.NewBuilder()
	for hour := range int64(3) {
		b.Add(affinity.Event{
			Time: hour * 3_600_000, Type: event.View, Name: "Product Viewed",
			Counts: []affinity.Count{{Facet: "color", Value: "Red", N: 1}},
		})
	}
	block := b.AppendBlock(nil)

	for e, err := range history.Events(block, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Time, e.Name, e.Counts)
	}
	// Output:
	// 0 Product Viewed [{color Red 1}]
	// 3600000 Product Viewed [{color Red 1}]
	// 7200000 Product Viewed [{color Red 1}]
}

// A Reader scores a block without decoding its events one by one.
func ExampleReader() {
	b := history.NewBuilder()
	b.Add(affinity.Event{
		Time: 1000, Type: event.Click, Name: "Product Clicked",
		Counts: []affinity.Count{{Facet: "brand", Value: "Acme", N: 2}},
	})
	block := b.AppendBlock(nil)

	compiled := affinity.Compile(strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventType: event.Click, EventName: "Product Clicked", Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "brand", Score: 3}},
	})
	scorer := affinity.NewScorer(compiled, affinity.Window{Now: 2000})
	events, err := history.NewReader(compiled, nil).Score(block, scorer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(events, scorer.Profile().Affinities)
	// Output: 1 [{brand Acme [60]}]
}

// Gaps are the ranges that a reader must take from the log.
func ExampleManifest_Gaps() {
	at := func(ms int64) history.Pos { return history.Pos{Time: ms} }
	m := history.Manifest{Blocks: []history.Block{
		{Range: history.Range{From: at(100), To: at(200)}},
		{Range: history.Range{From: at(300), To: at(400)}},
	}}
	for _, gap := range m.Gaps(at(150)) {
		if gap.To == history.End {
			fmt.Println("from", gap.From.Time)
			continue
		}
		fmt.Println(gap.From.Time, "to", gap.To.Time)
	}
	// Output:
	// 200 to 300
	// from 400
}
