package upgrade

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// ranked returns a strategy with a ranking by profile and session alone, which no
// clock and no statistics of the crowd change.
func ranked(text string) string {
	return strings.TrimSuffix(text, "}") + `,"ranking":{"contrast":"none","session":{"halfLife":"2e","weight":50},` +
		`"popularity":{"weight":0},"pairs":{"weight":0},"freshness":{"weight":0}}}`
}

// rank lets the new engine order objects under a strategy that both have. The old
// one must not mind. Where each engine has its own configuration, only the new one
// gets the ranking.
func (w *world) rank(text string) {
	w.t.Helper()
	decoded, err := strategy.Decode([]byte(ranked(text)))
	w.must("decode a ranking", err)
	w.must("set a ranking by the new engine", w.current.Strategies().SetJSON(w.t.Context(), []byte(ranked(text)), client.SetOptions{}))
	w.strategy, w.ranks = decoded, true
	var wrong []string
	if !poll(w.t.Context(), settleTimeout, func() bool {
		wrong = w.misranked(w.t.Context())
		return len(wrong) == 0
	}) {
		w.t.Fatalf("a ranking by the new engine: %s", strings.Join(wrong, "\n"))
	}
	w.agree("a ranking by the new engine", w.current, w.old)
}

// checkRanks compares every order of the new engine with the formula: a session
// that the old engine did not know of must not outlive what it wrote.
func (w *world) checkRanks(step string) {
	w.t.Helper()
	if wrong := w.misranked(w.t.Context()); len(wrong) > 0 {
		w.t.Fatalf("%s: %s", step, strings.Join(wrong, "\n"))
	}
}

// misranked returns the users whose order is not that of the formula.
func (w *world) misranked(ctx context.Context) (wrong []string) {
	ids := slices.Sorted(maps.Keys(w.catalog))
	now := time.Now().UnixMilli()
	for _, user := range slices.Sorted(maps.Keys(w.log)) {
		answer, err := w.current.Rank(ctx, api.RankRequest{UserToken: user, Index: index, ObjectIDs: ids, Explain: true})
		if err != nil {
			return append(wrong, fmt.Sprintf("the new engine does not rank for %s: %v", user, err))
		}
		if difference := compareRanks(answer.Items, ranking.Reference(w.strategy, w.query(user, ids, now)).Items); difference != "" {
			wrong = append(wrong, fmt.Sprintf("the order for %s (strategy %d): %s", user, answer.StrategyVersion, difference))
		}
	}
	return wrong
}

// query returns what the formula ranks for a user.
func (w *world) query(user string, ids []string, now int64) *ranking.Query {
	window := affinity.Window{Now: now, RetentionDays: retentionDays, DeletedUntil: w.deleted[user]}
	events := w.events(user)
	q := &ranking.Query{Now: now, Explain: true, Affinities: affinity.Reference(events, w.strategy, window).Affinities,
		Session: affinity.ReferenceSession(events, w.strategy, window)}
	for _, id := range ids {
		var filters []event.Filter
		for _, filter := range w.catalog[id] {
			facet, value, _ := strings.Cut(filter, ":")
			filters = append(filters, event.Filter{Facet: facet, Value: value})
		}
		q.Candidates = append(q.Candidates, ranking.Candidate{ObjectID: id, Object: ranking.Compile(filters)})
	}
	return q
}

// compareRanks returns the first difference between two orders, or "".
func compareRanks(got []api.RankedItem, want []ranking.Item) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d items, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].ObjectID != want[i].ObjectID || math.Abs(got[i].Score-want[i].Score) > 1e-9 {
			return fmt.Sprintf("place %d is %s with %v, want %s with %v", i+1, got[i].ObjectID, got[i].Score, want[i].ObjectID, want[i].Score)
		}
	}
	return ""
}
