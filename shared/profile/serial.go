package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// errBusy is the fault of a user who has waited too long to be computed alone.
var errBusy error = busy{}

type busy struct{}

func (busy) Error() string {
	return "the user has very many values, and other such users are computed first; try again"
}

// Transient reports that another attempt may succeed.
func (busy) Transient() bool { return true }

// takeTurn takes the place of the user who is computed alone. It reports whether the
// place was free in time.
func (c *computer) takeTurn(ctx context.Context, patience time.Duration) bool {
	select {
	case c.serial <- struct{}{}:
		return true
	default:
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	select {
	case c.serial <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// computeSerially computes a user with very many values, in passes over blocks and
// log. What the last pass has read besides the scores stays in the computation.
func (c *computer) computeSerially(ctx context.Context, w work, u *computation, done func([]*computation) error) error {
	if !c.takeTurn(ctx, w.patience) {
		u.fault = fmt.Errorf("compute %s,%s: %w", w.app.ID, u.token, errBusy)
		return nil
	}
	defer func() { <-c.serial }()
	c.counters.Alone.Add(1)
	defer func() { u.pass, u.scorer = nil, nil }() // the next attempt, under another schema, is a first one
	for range maxRestarts {
		err := c.inPasses(ctx, w, u)
		switch {
		case errors.Is(err, errOtherTicket):
			// Events of writers before the new ticket may be later than the window.
			if err := c.score(ctx, w, []*computation{u}); err != nil || u.fault != nil {
				return err
			}
			u.release()
		case err != nil || u.fault != nil:
			return err
		default:
			return complete([]*computation{u}, done)
		}
	}
	u.fault = fmt.Errorf("compute %s,%s alone: the history changed %d times", w.app.ID, u.token, maxRestarts)
	return nil
}

var errOtherTicket = errors.New("the row was read again, at another ticket")

// inPasses computes the user in passes that all have the window of the first one, and the
// ticket. After errOtherTicket, u is one that no pass has seen.
func (c *computer) inPasses(ctx context.Context, w work, u *computation) error {
	ticket := u.row.Ticket
	_, err := affinity.InPasses(w.compiled, u.window, c.limits.hold, func(sc *affinity.Scorer) error {
		u.pass = sc
		err := c.score(ctx, w, []*computation{u})
		if err == nil && u.fault == nil && u.row.Ticket != ticket {
			return errOtherTicket
		}
		return err
	})
	if errors.Is(err, errOtherTicket) {
		u.pass, u.scorer = nil, nil
	}
	return err
}
