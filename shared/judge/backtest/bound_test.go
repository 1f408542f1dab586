package backtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// An event counts in a backtest what it counts in the engine, also if its objects have
// more filters than an event may count.
func TestEventsCountAsInTheEngine(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	known, objects := bus.Objects{"p": {}}, []Object(nil)
	for i := range 40 {
		o, bytes := Object{ID: fmt.Sprint(i)}, 5+rnd.IntN(60)
		for n := range []int{0, 3, 40, 300, 900, 1000}[rnd.IntN(6)] {
			value := fmt.Sprintf("%d-%d", i%7, n)
			o.Filters = append(o.Filters, event.Filter{Facet: "f", Value: value + strings.Repeat("-", max(0, bytes-len(value)))})
		}
		var filters []bus.Filter
		for _, f := range o.Filters {
			filters = append(filters, bus.Filter{f.Facet, f.Value})
		}
		known.Put("p", o.ID, filters)
		objects = append(objects, o)
	}
	l, err := NewLog("p", objects)
	if err != nil {
		t.Fatal(err)
	}
	var events []event.Event
	for i := range 60 {
		e := event.Event{Type: event.View, Name: "Viewed", Index: "p", UserToken: fmt.Sprint("u", i%20), Time: int64(i)}
		for _, id := range rnd.Perm(44)[:1+rnd.IntN(20)] {
			e.ObjectIDs = append(e.ObjectIDs, fmt.Sprint(id))
		}
		events = append(events, e)
		l.Add(Event{User: e.UserToken, Time: e.Time, ID: fmt.Sprint(i), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs})
	}
	p := rolling(t, l, viewed).compile(strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f", Score: 1}},
	})
	bounded := 0
	for i := range l.events {
		e := &l.events[i]
		want := sumOf(enrich.Counts(&events[e.time], known))
		if got := sumOf(l.scoring(e).Counts); !maps.Equal(got, want) {
			t.Fatalf("objects %v: %d filters count, want %d", events[e.time].ObjectIDs, len(got), len(want))
		}
		total := 0
		for _, n := range want {
			total += n
		}
		p.addEvent(e, func(int32) { total-- })
		if total != 0 {
			t.Errorf("objects %v: a walk adds %d filters too few", events[e.time].ObjectIDs, total)
		}
		if e.counted < e.objects {
			bounded++
		}
	}
	if bounded == 0 {
		t.Error("no event is bounded")
	}
}

func sumOf(counts []affinity.Count) map[event.Filter]int {
	sums := map[event.Filter]int{}
	for _, c := range counts {
		sums[event.Filter{Facet: c.Facet, Value: c.Value}] += c.N
	}
	return sums
}
