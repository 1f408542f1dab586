package tune

import (
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/realdata"
)

// realLog reads real data, or skips the test.
func realLog(t *testing.T, name string) *backtest.Log {
	t.Helper()
	var objects []backtest.Object
	for _, o := range realdata.Objects(t, name) {
		objects = append(objects, backtest.Object{ID: o.ID, Filters: o.Filters})
	}
	l, err := backtest.NewLog(realdata.Index, objects)
	must.Succeed(t, err)
	for e := range realdata.Events(t, name) {
		l.Add(backtest.Event{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs})
	}
	return l
}

// On real data a search of few trials must be worth its time: much better than
// the plain ranking, and better than showing everybody the most popular objects.
// `affinity tune` judges all cases and searches longer.
func TestRealData(t *testing.T) {
	for _, d := range []struct {
		name  string
		times float64 // the plain ranking's nDCG
	}{{"clickstream", 2.3}, {"onlineretail", 3}} {
		t.Run(d.name, func(t *testing.T) {
			if race.On && d.name != "clickstream" {
				t.Skip("one set of data is enough under the race detector")
			}
			given := realdata.Strategy(t, d.name)
			cases, err := realLog(t, d.name).Cases(t.Context(), given, backtest.Options{Sample: 700})
			must.Succeed(t, err)
			o, err := Run(t.Context(), cases, given, Options{Trials: 20, Within: backtest.None})
			must.Succeed(t, err)
			best := o.Report.Find(api.BestSellers)
			t.Logf("nDCG of %d untouched cases: plain %.4f, popularity %.4f, given %.4f, tuned %.4f", o.Untouched.Len(), o.Plain.NDCG, best.NDCG, o.Given.NDCG, o.Tuned.NDCG)
			if o.Tuned.NDCG < d.times*o.Plain.NDCG {
				t.Errorf("tuned nDCG %.4f, want at least %.1f times the plain %.4f", o.Tuned.NDCG, d.times, o.Plain.NDCG)
			}
			if g := o.Tuned.Over(best); g.Low <= 0 {
				t.Errorf("gain over popularity %.4f (%.4f to %.4f), want an interval above 0", g.Difference, g.Low, g.High)
			}
		})
	}
}
