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
	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// judge looks at the profiles of users and keeps those who meet the condition. It reads
// the profiles that it does not know.
//
// A cached profile is valid until it expires, as long as the list of changes, read from
// the profile's cut onward, does not name the user: it was read at the last ticket of its
// row, so it counts every change before that cut. If the list was not read that far back,
// the profile is valid only if the user's row still has the ticket at which the profile was
// read, which costs a read of the ticket alone.
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
			before, tickets := make(map[string]kept, len(some)), make(map[string]int64, len(some))
			for _, u := range some {
				before[u.user], tickets[u.user] = u.kept, u.ticket
			}
			err := e.profiles.ReadChanged(ctx, e.app, tickets, func(user string, stored []byte, ticket int64) error {
				if stored == nil {
					stored = before[user].profile
				}
				p, err := l.Find(e.q, stored, e.at)
				if err != nil {
					return err
				}
				if !e.scored(p) {
					return e.notReady(ctx, e.app, scoringChanged)
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
				e.rows.kept.Set(rowKey{app: e.appID, user: user},
					kept{profile: stored, cut: cut, ticket: ticket, bytes: len(stored),
						holdout: e.app.Holdout})
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

// unknown is a user whose profile must be read, unless their row has the ticket of the
// kept one.
type unknown struct {
	user string
	kept
}

// judgeKnown judges the users whose profiles are cached. It returns the users whose
// profiles must be read.
func (e *evaluation) judgeKnown(users []string) (rest []unknown) {
	var l segment.Lookup
	for _, user := range users {
		known, is := e.rows.kept.Get(rowKey{app: e.appID, user: user})
		if !is || known.holdout != e.app.Holdout {
			rest = append(rest, unknown{user: user})
			continue
		}
		p, err := l.Find(e.q, known.profile, e.at)
		if err != nil || !e.scored(p) || p.Until != math.MaxInt64 && p.Anchor >= p.Until {
			rest = append(rest, unknown{user: user})
			continue
		}
		if slot, listed := e.listed[user]; known.cut < e.since || listed && slot >= known.cut {
			rest = append(rest, unknown{user, known})
			continue
		}
		if score, holds := e.q.Holds(p); p.Known && holds {
			e.add(user, score)
		}
	}
	return rest
}

// scored reports whether a profile is scored as the app scores.
func (e *evaluation) scored(p affinity.Profile) bool {
	return e.app.ScoresAs(p.StrategyVersion) && p.RetentionDays == e.app.RetentionDays
}

// add keeps a user who meets the condition.
func (e *evaluation) add(user string, score float64) {
	// A profile of an instant to come does not decay until then.
	e.read = append(e.read, segment.User{Order: e.q.Order(score, e.at), Token: user, Part: -1})
}
