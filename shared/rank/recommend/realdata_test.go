package recommend_test

import (
	"cmp"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/rank/recommend"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TestForYouLosesLittle compares the order of what for-you brings in with the order of all
// objects of the index: on real data, by the nDCG@10 of what users turned to next.
func TestForYouLosesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("ranks all objects of real data for some hundred users")
	}
	for _, name := range []string{"clickstream", "onlineretail"} {
		t.Run(name, func(t *testing.T) {
			s := realdata.Strategy(t, name)
			s.Ranking = strategy.SuggestedRanking()
			cases, err := someUsers(t, name).Cases(t.Context(), s, backtest.Options{})
			must.Succeed(t, err)
			r := ranking.New(s)
			all, some, pooled := 0.0, 0.0, 0
			for i := range cases.Len() {
				q, relevant, err := cases.Query(i, s)
				must.Succeed(t, err)
				q.Explain, q.Limit = false, 10
				all += ndcg(r.Rank(q).Items, relevant)
				q.Candidates = forYou(q)
				pooled += len(q.Candidates)
				some += ndcg(r.Rank(q).Items, relevant)
			}
			t.Logf("%d cases: nDCG@10 %.4f of all objects, %.4f (%.3fx) of %d", cases.Len(), all/float64(cases.Len()),
				some/float64(cases.Len()), some/all, pooled/max(cases.Len(), 1))
			if some < 0.95*all {
				t.Errorf("for-you reaches %.3f of the nDCG@10 of all objects, want 0.95", some/all)
			}
		})
	}
}

// forYou returns the candidates that for-you brings in: links, and the first popular objects.
func forYou(q *ranking.Query) []ranking.Candidate {
	popular := slices.Clone(q.Candidates)
	slices.SortFunc(popular, func(a, b ranking.Candidate) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ObjectID, b.ObjectID))
	})
	pool := recommend.NewPool()
	pool.Add(1000, recommend.Linked(recommend.ForYou, q.Neighbours)...)
	for _, c := range popular[:min(len(popular), 200)] {
		pool.Add(math.MaxInt, recommend.From(recommend.Popular, []string{c.ObjectID})...)
	}
	taken := map[string]bool{}
	for _, e := range pool.Entries {
		taken[e.ObjectID] = true
	}
	return slices.DeleteFunc(popular, func(c ranking.Candidate) bool { return !taken[c.ObjectID] })
}

// someUsers reads the events of a tenth of the users.
func someUsers(t *testing.T, name string) *backtest.Log {
	t.Helper()
	var objects []backtest.Object
	for _, o := range realdata.Objects(t, name) {
		objects = append(objects, backtest.Object{ID: o.ID, Filters: o.Filters})
	}
	log, err := backtest.NewLog(realdata.Index, objects)
	must.Succeed(t, err)
	for e := range realdata.Events(t, name) {
		if crc32.ChecksumIEEE([]byte(e.UserToken))%10 == 0 {
			log.Add(backtest.Event{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index,
				ObjectIDs: e.ObjectIDs})
		}
	}
	return log
}

func ndcg(items []ranking.Item, relevant []string) float64 {
	gain, ideal := 0.0, 0.0
	for i, item := range items {
		if slices.Contains(relevant, item.ObjectID) {
			gain += 1 / math.Log2(float64(i+2))
		}
	}
	for i := range min(len(relevant), 10) {
		ideal += 1 / math.Log2(float64(i+2))
	}
	return gain / ideal
}
