package measure

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

const (
	judged    = 20   // users whose profiles are compared with the formula affinity by affinity
	tolerance = 1e-9 // relative
)

// judge holds the expected profiles.
type judge struct {
	first  []affinity.Profile // of the first users
	scores float64            // sum over all users
	expect totals
}

// newJudge computes the expected profiles from the data set.
func newJudge(ctx context.Context, d *dataset) (*judge, error) {
	j := &judge{expect: totals{users: int64(d.users), events: int64(d.total())}}
	compiled := affinity.Compile(d.strategy)
	var mu sync.Mutex
	err := eachShard(ctx, d.users, logShard, func() func(context.Context, span) error {
		sc, events := affinity.NewScorer(compiled, d.window), []entry(nil)
		return func(_ context.Context, sp span) error {
			scores := 0.0
			for i := sp.from; i < sp.to; i++ {
				sc.Reset(d.window)
				events = d.events(i, events)
				for _, e := range events {
					sc.AddEvent(e.Event)
				}
				scores += sum(sc.Profile())
			}
			mu.Lock()
			defer mu.Unlock()
			j.scores += scores
			return nil
		}
	})
	for i := range min(judged, d.users) {
		var plain []affinity.Event
		for _, e := range d.events(i, nil) {
			plain = append(plain, e.Event)
		}
		j.first = append(j.first, affinity.Reference(plain, d.strategy, d.window))
	}
	return j, err
}

// total checks the sums of a recompute.
func (j *judge) total(t *target) error {
	switch {
	case t.total.users != j.expect.users:
		return fmt.Errorf("computed %d profiles, want %d", t.total.users, j.expect.users)
	case t.total.events != j.expect.events:
		return fmt.Errorf("read %d events, want %d", t.total.events, j.expect.events)
	}
	return nil
}

// stored checks the profiles that the last recompute wrote.
func (j *judge) stored(ctx context.Context, c *client, d *dataset) error {
	total, n := 0.0, 0
	err := eachStored(ctx, c, d, func(user string, p affinity.Profile) error {
		if p.StrategyVersion != c.version {
			return fmt.Errorf("the profile of %s is of version %d, want %d", user, p.StrategyVersion, c.version)
		}
		if n < len(j.first) {
			if err := equal(p, j.first[n]); err != nil {
				return fmt.Errorf("the profile of %s is wrong: %w", user, err)
			}
		}
		total += sum(p)
		n++
		return nil
	})
	if err == nil && !same(total, j.scores) {
		err = fmt.Errorf("all scores written add up to %v, want %v", total, j.scores)
	}
	return err
}

// eachStored passes the stored profiles of all users in their order.
func eachStored(ctx context.Context, c *client, d *dataset, do func(user string, p affinity.Profile) error) error {
	for from := 0; from < d.users; from += historyShard {
		var users []string
		for i := from; i < min(from+historyShard, d.users); i++ {
			users = append(users, d.user(i))
		}
		rows, err := c.store.Users.ReadUsers(ctx, appID, users)
		if err != nil {
			return fmt.Errorf("read what was written: %w", err)
		}
		for _, user := range users {
			p, err := affinity.ParseProfile(rows[user].Profile, 0)
			if err != nil {
				return fmt.Errorf("what was written of %s: %w", user, err)
			}
			if err := do(user, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// equal compares a profile with the formula.
func equal(got, want affinity.Profile) error {
	if got.Known != want.Known || got.Anchor != want.Anchor || got.LastEventAt != want.LastEventAt ||
		got.Until != want.Until {
		return fmt.Errorf("known %t, anchor %d, last event %d, until %d; want %t, %d, %d, %d",
			got.Known, got.Anchor, got.LastEventAt, got.Until, want.Known, want.Anchor, want.LastEventAt, want.Until)
	}
	if len(got.Affinities) != len(want.Affinities) {
		return fmt.Errorf("%d affinities, want %d", len(got.Affinities), len(want.Affinities))
	}
	type filter struct{ facet, value string }
	scores := make(map[filter][]float64, len(got.Affinities))
	for _, a := range got.Affinities {
		scores[filter{a.Facet, a.Value}] = a.Scores
	}
	for _, a := range want.Affinities {
		if !slices.EqualFunc(scores[filter{a.Facet, a.Value}], a.Scores, same) {
			return fmt.Errorf("%s:%s scores %v, want %v", a.Facet, a.Value, scores[filter{a.Facet, a.Value}], a.Scores)
		}
	}
	return nil
}

// same reports whether two scores are equal up to rounding.
func same(a, b float64) bool { return math.Abs(a-b) <= tolerance*math.Max(math.Abs(a), math.Abs(b)) }
