package backtest_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// catalog has objects a to e of two brands.
func catalog() []backtest.Object {
	var objects []backtest.Object
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		objects = append(objects, backtest.Object{ID: id, Filters: []event.Filter{{Facet: "brand", Value: []string{"X", "Y"}[i%2]}}})
	}
	return objects
}

var views = strategy.Strategy{
	EventsScoring:         []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: 10}},
	FacetsScoring:         []strategy.FacetScore{{FacetName: "brand", Score: 10}},
	PersonalizationImpact: 50,
}

// log returns a log of views, each written as user:time:objects.
func log(t *testing.T, objects []backtest.Object, lines ...string) *backtest.Log {
	t.Helper()
	l, err := backtest.NewLog("p", objects)
	must.Succeed(t, err)
	for i, line := range lines {
		e := backtest.Event{ID: fmt.Sprint(i), Type: event.View, Name: "Viewed", Index: "p"}
		var named string
		if _, err := fmt.Sscanf(strings.ReplaceAll(line, ":", " "), "%s %d %s", &e.User, &e.Time, &named); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		e.ObjectIDs = strings.Split(named, "+")
		l.Add(e)
	}
	return l
}

// By hand: the cut of 0..100 is 80. Before it, a is named by 2 events, b by 2
// and c by 1. u has seen a and b and turns to d: of c, d and e popularity puts
// it second. v has seen c and turns to a and e: of a, b, d and e the list has a
// first and e fourth.
func TestMetricsByHand(t *testing.T) {
	l := log(t, catalog(), "u:0:a", "u:10:b", "v:20:c", "w:30:a", "w:40:b", "u:100:d", "v:90:a+e+c", "x:95:a")
	c, err := l.Cases(t.Context(), views, backtest.Options{At: 3})
	must.Succeed(t, err)
	if c.Cut() != 80 || c.Len() != 2 || c.Candidates() != 5 {
		t.Fatalf("cut %d, %d cases, %d candidates; want 80, 2, 5", c.Cut(), c.Len(), c.Candidates())
	}
	got, err := c.Popularity(t.Context())
	must.Succeed(t, err)
	second := 1 / math.Log2(3)
	want := []float64{(second + 1/(1+second)) / 2, 1, (0.5 + 1) / 2, 1}
	for i, value := range []float64{got.NDCG, got.HitRate, got.MRR, got.Coverage} {
		if math.Abs(value-want[i]) > 1e-12 {
			t.Errorf("nDCG, hit rate, MRR, coverage: number %d is %g, want %g", i, value, want[i])
		}
	}
}

func TestNothingToJudge(t *testing.T) {
	nothing := strategy.Strategy{PersonalizationImpact: 50}
	zero, off := 0, views
	off.PersonalizationImpact = 0
	off.Ranking = &strategy.Ranking{
		Session: &strategy.SessionRanking{Weight: &zero}, Popularity: &strategy.PopularityRanking{Weight: &zero},
		Pairs: &strategy.PairsRanking{Weight: &zero}, Freshness: &strategy.FreshnessRanking{Weight: &zero},
	}
	noFacets := views
	noFacets.FacetsScoring = []strategy.FacetScore{{FacetName: "brand", Score: 0}}
	full := 50
	undated := views
	undated.Ranking = &strategy.Ranking{Freshness: &strategy.FreshnessRanking{Attribute: "noSuchAttribute", Weight: &full}}
	otherKind := views
	otherKind.EventsScoring = []strategy.EventScore{{EventName: "Bought", EventType: event.Conversion, Score: 10}}
	unknown := views
	unknown.FacetsScoring = []strategy.FacetScore{{FacetName: "size", Score: 10}}
	good := []string{"u:0:a", "u:100:b", "v:0:a", "v:90:c"}
	for _, test := range []struct {
		lines    []string
		strategy strategy.Strategy
		options  backtest.Options
		want     string
	}{
		{nil, views, backtest.Options{}, "holds no events"},
		{[]string{"u:0:a"}, views, backtest.Options{}, "only one event"},
		{[]string{"u:0:a", "u:5:b"}, views, backtest.Options{}, "of one user"},
		{[]string{"u:0:a", "u:5:b", "v:100:c"}, views, backtest.Options{}, "no case"},
		{[]string{"u:0:z", "v:5:z"}, views, backtest.Options{}, "no event that the strategy scores names an object"},
		{good, nothing, backtest.Options{}, "no entry of eventsScoring"},
		{good, noFacets, backtest.Options{}, "no entry of facetsScoring"},
		{good, off, backtest.Options{}, "all weights of its ranking are 0"},
		{good, undated, backtest.Options{}, `ranking.freshness has the weight 50, but no object of index "p" has a date in the attribute "noSuchAttribute"`},
		{good, otherKind, backtest.Options{}, "scores none of the 4 events: the log has view Viewed"},
		{good, unknown, backtest.Options{}, `scores no attribute that the objects of index "p" have: they have brand`},
		{good, views, backtest.Options{Within: "size"}, `no object of index "p" has the attribute "size": they have brand`},
		{good, views, backtest.Options{Protocol: "first"}, "protocol"},
		{good, views, backtest.Options{At: 1001}, "from 1 to 1000"},
		{good, views, backtest.Options{Sample: -1}, "sample"},
	} {
		c, err := log(t, catalog(), test.lines...).Cases(t.Context(), test.strategy, test.options)
		if err == nil {
			_, err = c.Judge(t.Context(), test.strategy)
		}
		if err == nil {
			_, err = c.Log().Judge(t.Context(), []backtest.Given{{Strategy: views}, {Strategy: test.strategy}}, test.options, nil)
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: error %v, want one with %q", test.lines, err, test.want)
		}
	}
	if _, err := backtest.NewLog("p", nil); err == nil || !strings.Contains(err.Error(), `index "p" has no objects`) {
		t.Errorf("a log without objects: error %v", err)
	}
}
