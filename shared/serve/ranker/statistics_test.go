package ranker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// An object that the catalog holds makes an instant whether or not the
// statistics know it yet, as in a backtest.
func TestHistory(t *testing.T) {
	x := indexStatistics{ref: store.CrowdRef{Index: "p"}, counts: map[string]float64{"old": 1, "older": 1}}
	session := affinity.Session{Events: []affinity.Event{
		{Time: 40, Index: "p", ObjectIDs: []string{"nowhere"}},
		{Time: 35, Index: "other", ObjectIDs: []string{"old"}},
		{Time: 30, Index: "p", ObjectIDs: []string{"new", "nowhere"}},
		{Time: 20, Index: "p", ObjectIDs: []string{"old", "old", "new"}},
		{Time: 10, Index: "p", ObjectIDs: []string{"older"}},
	}}
	if got := x.undecided(session); !slices.Equal(got, []string{"nowhere", "new", "nowhere"}) {
		t.Errorf("undecided objects %v", got)
	}
	if got := x.history(session, map[string]bool{"new": true}); !slices.Equal(got, []ranking.Past{{ObjectID: "old", Last: false, Age: 0}, {ObjectID: "older", Last: false, Age: 1}}) {
		t.Errorf("history %v: the last instant has an object that the statistics do not know", got)
	}
	if got := x.history(session, nil); !slices.Equal(got, []ranking.Past{{ObjectID: "old", Last: true, Age: 0}, {ObjectID: "older", Last: false, Age: 1}}) {
		t.Errorf("history %v, want old last: the catalog holds no newer object", got)
	}
}

// To ask the catalog for the undecided objects alone finds the same instant as
// to ask it for all of them.
func TestHistoryKnowsTheCatalog(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		catalog, x := map[string]bool{}, indexStatistics{ref: store.CrowdRef{Index: "p"}, counts: map[string]float64{}}
		for _, id := range ids {
			if catalog[id] = rapid.Bool().Draw(t, "in the catalog"); catalog[id] && rapid.Bool().Draw(t, "counted") {
				x.counts[id] = 1
			}
		}
		var session affinity.Session
		time := int64(100)
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			time -= rapid.Int64Range(0, 1).Draw(t, "age")
			session.Events = append(session.Events, affinity.Event{
				Time: time, Index: rapid.SampledFrom([]string{"p", "p", "other"}).Draw(t, "index"),
				ObjectIDs: rapid.SliceOfN(rapid.SampledFrom(ids), 0, 3).Draw(t, "objects"),
			})
		}
		held := map[string]bool{}
		for _, id := range x.undecided(session) {
			held[id] = catalog[id]
		}
		want := ranking.History(session, "p", func(id string) bool { return catalog[id] }, x.knows)
		if got := x.history(session, held); !slices.Equal(got, want) {
			t.Fatalf("history %v, want %v", got, want)
		}
	})
}
