package query

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/segment"
	"github.com/affinityengine/affinity/shared/store"
)

// judge looks at the profiles of users and keeps those who meet the condition. It reads
// the profiles that it does not know.
//
// A profile that was read before is used as a delta uses one. It was read at the last
// ticket of its row, so it counts every change that is listed before the cut of that
// read. It holds while the user is not listed from that cut on, and until it expires. The
// list must have been read from that cut on.
func (e *evaluation) judge(ctx context.Context, users []string) error {
	unknown := e.judgeKnown(users)
	if len(unknown) == 0 {
		return nil
	}
	keep := len(unknown) <= MaxPageChanges // more would drive out all rows
	cut := store.CutAt(e.now())
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	for some := range slices.Chunk(unknown, max(1, (len(unknown)+readers-1)/readers)) {
		g.Go(func() error {
			var l segment.Lookup
			err := e.profiles.ReadStored(ctx, e.app, some, func(user string, stored []byte) error {
				p, err := l.Find(e.q, stored, e.at)
				if err != nil {
					return err
				}
				if !e.app.ScoresAs(p.StrategyVersion) || p.RetentionDays != e.app.RetentionDays {
					return e.notReady(ctx, e.appID, scoringChanged)
				}
				if score, holds := e.q.Holds(p); p.Known && holds {
					mu.Lock()
					e.add(user, score)
					mu.Unlock()
				}
				if !keep {
					return nil
				}
				if err := admission.Take(ctx, int64(len(stored))); err != nil {
					return err
				}
				e.rows.kept.Set(rowKey{app: e.appID, user: user}, kept{profile: stored, cut: cut, bytes: len(stored)})
				return nil
			})
			var faulty profile.Faulty
			if errors.As(err, &faulty) {
				return nil // the engine has logged them; all others are read
			}
			return err
		})
	}
	return g.Wait()
}

// judgeKnown does it for the users whose profiles are known, and returns the others.
func (e *evaluation) judgeKnown(users []string) (unknown []string) {
	var l segment.Lookup
	for _, user := range users {
		known, is := e.rows.kept.GetIfPresent(rowKey{app: e.appID, user: user})
		slot, listed := e.listed[user]
		if !is || known.cut < e.since || listed && slot >= known.cut {
			unknown = append(unknown, user)
			continue
		}
		p, err := l.Find(e.q, known.profile, e.at)
		if err != nil || !e.app.ScoresAs(p.StrategyVersion) || p.RetentionDays != e.app.RetentionDays ||
			p.Until != math.MaxInt64 && p.Anchor >= p.Until {
			unknown = append(unknown, user)
			continue
		}
		if score, holds := e.q.Holds(p); p.Known && holds {
			e.add(user, score)
		}
	}
	return unknown
}

// add keeps a user who meets the condition.
func (e *evaluation) add(user string, score float64) {
	// A profile of an instant to come does not decay until then.
	e.read = append(e.read, segment.User{Order: e.q.Order(score, e.at), Token: user, Part: -1})
}
