package backtest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// What people are shown of a case is what the reference ranks, score by score.
func TestShowsWhatTheReferenceRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, events := drawObjects(t), drawEvents(t)
		given, s, options := drawStrategy(t), drawStrategy(t), drawOptions(t)
		c, err := load(t, objects, events).Cases(t.Context(), given, options)
		if err != nil || Check(s) != nil {
			return
		}
		r := newReference("p", events, objects, given, options)
		for i, want := range r.cases() {
			shown, err := c.Show(i, s)
			if err != nil {
				t.Fatal(err)
			}
			if shown.User != want.user || shown.Time != want.time || !slices.Equal(shown.Relevant, slices.Sorted(slices.Values(want.relevant))) {
				t.Fatalf("case %d = %+v, want %+v", i, shown, want)
			}
			popular := r.orderByPopularity(want)
			if popular = popular[:min(options.At, len(popular))]; !slices.Equal(shown.Popular, popular) {
				t.Fatalf("case %d by popularity = %v, want %v", i, shown.Popular, popular)
			}
			items := ranking.Reference(s, r.query(want, s)).Items
			if len(shown.Items) != min(options.At, len(items)) {
				t.Fatalf("case %d shows %d items, want %d", i, len(shown.Items), min(options.At, len(items)))
			}
			for n, item := range shown.Items {
				if !near(item.Score, items[n].Score) {
					t.Fatalf("case %d, place %d: score %g, want %g", i, n+1, item.Score, items[n].Score)
				}
				sum := 0.0
				for _, f := range item.Features {
					sum += f.Value
				}
				if !near(sum, item.Score) {
					t.Fatalf("case %d, place %d: features add up to %g, the score is %g", i, n+1, sum, item.Score)
				}
			}
		}
	})
}

func TestCasesOfOneUserHaveOneUserKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := load(t, drawObjects(t), drawEvents(t))
		c, err := l.Cases(t.Context(), drawStrategy(t), Options{Protocol: Rolling})
		if err != nil {
			return
		}
		keys, users := map[string]uint64{}, map[uint64]string{}
		for i := range c.Len() {
			user, key := l.users[c.cases[i].user], c.UserKey(i)
			if before, ok := keys[user]; ok && before != key {
				t.Fatalf("user %s has two keys", user)
			}
			if other, ok := users[key]; ok && other != user {
				t.Fatalf("users %s and %s have one key", user, other)
			}
			keys[user], users[key] = key, user
		}
	})
}
