package backtest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

func TestKindsAndObjects(t *testing.T) {
	objects := []backtest.Object{
		{ID: "a", Filters: []event.Filter{{Facet: "brand", Value: "X"}, {Facet: "tag", Value: "new"}, {Facet: "tag", Value: "sale"}}},
		{ID: "b", Filters: []event.Filter{{Facet: "brand", Value: "X"}, {Facet: "name", Value: "B"}}, Dates: map[string]int64{"at": 1}},
		{ID: "c", Filters: []event.Filter{{Facet: "name", Value: "C"}, {Facet: "tag", Value: "sale"}}},
	}
	l := log(t, objects, "u:0:a", "u:5:gone", "v:7:b+gone")
	l.Add(backtest.Event{User: "u", Time: 9, Type: event.Click, Name: "Clicked", Filters: []event.Filter{{Facet: "color", Value: "red"}}})
	wantKinds := []backtest.Kind{
		{Type: event.Click, Name: "Clicked", Events: 1}, {Type: event.View, Name: "Viewed", Events: 3, Named: 2},
	}
	if diff := cmp.Diff(wantKinds, l.Kinds()); diff != "" {
		t.Error(diff)
	}
	i := 0
	l.EachObject(func(filters []event.Filter) {
		if diff := cmp.Diff(objects[i].Filters, filters); diff != "" {
			t.Error(diff)
		}
		i++
	})
	if i != len(objects) {
		t.Errorf("%d objects, want %d", i, len(objects))
	}
	if diff := cmp.Diff([]string{"at"}, l.DateAttributes()); diff != "" {
		t.Error(diff)
	}
}

// Random relevant objects are candidates, as many as before, and every candidate
// is as likely: all orders have the same expected nDCG, which is that of a random
// order.
func TestRandomRelevantHelpsNoOrder(t *testing.T) {
	l := log(t, catalog(), "u:0:a", "u:10:b", "v:20:c", "w:30:a", "w:40:b", "u:100:d", "v:90:a+e+c", "x:95:a")
	c, err := l.Cases(t.Context(), views, backtest.Options{At: 1})
	must.Succeed(t, err)
	// At 1, a list gains 1 with probability relevant / candidates: case u has 1 of
	// 3 candidates, case v 2 of 4.
	const seeds, want = 4000, (1.0/3 + 2.0/4) / 2
	popular, judged := 0.0, 0.0
	for seed := range uint64(seeds) {
		drawn := c.RandomRelevant(seed)
		r, err := drawn.Judge(t.Context(), views)
		must.Succeed(t, err)
		popular += popularity(t, drawn) / seeds
		judged += r.NDCG / seeds
	}
	for name, got := range map[string]float64{"popularity": popular, "the strategy": judged} {
		if got < want-0.03 || got > want+0.03 { // five standard errors
			t.Errorf("mean nDCG of %s = %.4f, want %.4f", name, got, want)
		}
	}
	before := popularity(t, c)
	c.RandomRelevant(1)
	if after := popularity(t, c); after != before {
		t.Errorf("drawing changed the cases: nDCG of popularity %v, before %v", after, before)
	}
}

// popularity returns the nDCG of popularity.
func popularity(t *testing.T, c *backtest.Cases) float64 {
	t.Helper()
	r, err := c.Popularity(t.Context())
	must.Succeed(t, err)
	return r.NDCG
}
