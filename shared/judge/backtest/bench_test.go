package backtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// shop returns a log of simulated events: users who turn to some of 5,000
// objects, the popular ones more often.
func shop(users, events, objects int) *Log {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []Object
	for i := range objects {
		filters := []event.Filter{
			{Facet: "brand", Value: fmt.Sprint("brand", rng.IntN(200))},
			{Facet: "category", Value: fmt.Sprint("category", rng.IntN(30))},
			{Facet: "colour", Value: fmt.Sprint("colour", rng.IntN(12))},
			{Facet: "price", Value: fmt.Sprint(rng.IntN(10))},
		}
		for t := range 4 {
			filters = append(filters, event.Filter{Facet: "tags", Value: fmt.Sprint(t, "-", rng.IntN(100))})
		}
		all = append(all, Object{ID: strconv.Itoa(i), Filters: filters})
	}
	l, err := NewLog("products", all)
	if err != nil {
		panic(err)
	}
	for i := range events {
		o := rng.IntN(1 + rng.IntN(objects))
		l.Add(Event{
			User: fmt.Sprint("user-", rng.IntN(users)), Time: 1_700_000_000_000 + rng.Int64N(90*24*3600*1000), ID: strconv.Itoa(i),
			Type: event.View, Name: "Viewed", Index: "products", ObjectIDs: []string{strconv.Itoa(o)},
		})
	}
	return l
}

var viewed = strategy.Strategy{
	EventsScoring: []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: 10}},
	FacetsScoring: []strategy.FacetScore{{FacetName: "brand", Score: 30}, {FacetName: "category", Score: 50},
		{FacetName: "colour", Score: 20}, {FacetName: "price", Score: 20}, {FacetName: "tags", Score: 10}},
	PersonalizationImpact: 50,
}

func BenchmarkShop(b *testing.B) {
	l := shop(10_000, 1_000_000, 5_000)
	c, err := l.Cases(b.Context(), viewed, Options{})
	must.Succeed(b, err)
	b.Run("cases", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Cases(b.Context(), viewed, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, judge := range map[string]func() (*Result, error){
		"default":    func() (*Result, error) { return c.Judge(b.Context(), viewed) },
		"plain":      func() (*Result, error) { return c.Judge(b.Context(), Plain(viewed)) },
		"random":     func() (*Result, error) { return c.Random(b.Context()) },
		"popularity": func() (*Result, error) { return c.Popularity(b.Context()) },
		"pairs":      func() (*Result, error) { return c.Pairs(b.Context()) },
		"interval":   func() (*Result, error) { r := judged(c.Popularity(b.Context())); r.Interval(); return r, nil },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := judge()
				must.Succeed(b, err)
				b.ReportMetric(r.NDCG, "ndcg")
				b.ReportMetric(float64(c.Len()), "cases")
			}
		})
	}
}
