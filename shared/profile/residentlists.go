package profile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/store"
)

// An app whose users have regions of their own has lists of users in each of these: changes, the parts of segments,
// calls, and what Clean removes of a user who has moved away. No list names a user who lives elsewhere, but for what is
// left of those who have moved.

// list lists tokens that live where the place is, after a change of their profiles.
func (p place) list(ctx context.Context, app config.App, tokens ...string) error {
	return p.at.writer.changes.list(ctx, app, tokens...)
}

// listed lets a token arrive in the region of e. It lists the token before as changed there and in the region that the
// token has left, whose row has moved by then: so who reads a part of either region that was made before the arrival
// finds the token in a list, and who makes a later one there leaves the token out.
func (e *Engine) listed(ctx context.Context, app config.App, token string, left *Engine, arrive func() error) error {
	if !app.Segments.On() || !app.Residency.On() && !strings.HasPrefix(app.Move.ID, residentMove) {
		return arrive()
	}
	app.Move = config.Move{} // each engine lists in its own region alone
	both, at := []*Engine{left, e}, e.env.now()
	for _, of := range both {
		if err := of.writer.changes.listAt(ctx, app, at, []string{token}); err != nil {
			return err
		}
	}
	if err := arrive(); err != nil {
		return err
	}
	for _, of := range both {
		if err := of.writer.changes.until(ctx, app, at, []string{token}); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a token is in the region of e, for work over the tokens of one region. One that a mover has
// left halfway is in the region that it leaves, and is listed as changed at its arrival. All tokens of an app without
// residency are.
func (e *Engine) holds(ctx context.Context, app config.App, token string) (bool, error) {
	if !app.Residency.On() {
		return true, nil
	}
	found, err := e.locate(ctx, app, token, store.UserState)
	return found.at == e, err
}

// keeps is holds of a token whose row in the region of e was read. A row that is nobody's gets an owner, so that the
// next such work need not look at the location.
func (e *Engine) keeps(ctx context.Context, app config.App, token string, row store.User) (bool, error) {
	for range maxOwnerChanges {
		switch o := row.Owner; {
		case o.State == store.Moved && o.Epoch <= closed:
			return false, nil // there was never anybody here
		case o.State == store.Moved:
			to, err := e.env.in(o.Region)
			if err != nil {
				return false, err
			}
			there, err := to.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
			if err != nil || there.Owner.Epoch >= o.Epoch {
				return false, err
			}
			return false, e.relocate(ctx, app, token, o)
		case o.State != store.Nobodys:
			return true, nil
		}
		if gone, err := e.forgotten(ctx, app, token, row); err != nil || gone {
			return false, err
		}
		took, err := e.adopt(ctx, app, token)
		if took {
			return true, nil
		}
		if _, away := errors.AsType[elsewhere](err); away {
			return false, nil
		}
		if err == nil {
			row, err = e.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		}
		if err != nil || !row.Exists {
			return false, err
		}
	}
	return false, errHops
}

// keepResidents takes the profiles out of a group of those who do not live in the region of its rows.
func (run *bulkRun) keepResidents(ctx context.Context, gr *group) error {
	var unsure []string
	for _, u := range gr.users {
		if !u.row.Owner.Here() {
			unsure = append(unsure, u.token)
		}
	}
	keeps := func(ctx context.Context, token string) (bool, error) {
		return run.engine.keeps(ctx, run.app, token, gr.byUser[token].row)
	}
	return each(ctx, unsure, keeps, func(token string, here bool) error {
		u := gr.byUser[token]
		if here {
			return nil
		}
		if u.stale {
			u.stale, gr.stale = false, gr.stale-1
		}
		if u.profile != nil {
			u.profile, gr.result.Known = nil, gr.result.Known-1
		}
		return nil
	})
}

// unname removes the token of a user who lives elsewhere from the lists of the region of e, but for the list of
// changes, of which the next build of segments removes what no part needs any more.
func (e *Engine) unname(ctx context.Context, app config.App, token string) error {
	s := e.env.store
	if _, err := s.Segments.BlankSegmentToken(ctx, app.ID, token); err != nil {
		return err
	}
	if _, err := s.Refused.ForgetRefused(ctx, app.ID, token); err != nil {
		return err
	}
	if err := s.Usage.DropHotUser(ctx, app.ID, token, e.env.now()); err != nil {
		return err
	}
	if err := s.Recent.ForgetRecent(ctx, app.ID, token, func(store.RecentEvent) bool { return true }); err != nil {
		return err
	}
	return s.Calls.ForgetUser(ctx, app.ID, token)
}

// rememberResidents is Remember of calls of users who have regions of their own.
func (e *Engine) rememberResidents(ctx context.Context, app config.App, calls []store.Call) error {
	byUser := map[string][]int{}
	for i, c := range calls {
		byUser[c.User] = append(byUser[c.User], i)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxMovingReads)
	for user, places := range byUser {
		g.Go(func() error {
			own := make([]store.Call, len(places))
			for i, n := range places {
				own[i] = calls[n]
			}
			if err := e.rememberResident(ctx, app, user, own); err != nil {
				return err
			}
			for i, n := range places {
				calls[n] = own[i]
			}
			return nil
		})
	}
	return g.Wait()
}

// rememberResident asks the memory of the region in which a token lives. If the token is leaving by then, the copy may
// have passed what that one remembers. So it proposes the answer to the memory of the other region, and the last answer
// holds.
func (e *Engine) rememberResident(ctx context.Context, app config.App, token string, calls []store.Call) error {
	at, err := e.env.entry(ctx, app, token)
	if err != nil {
		return err
	}
	epoch := int64(0)
	for range maxHops {
		if err := at.env.store.Calls.Remember(ctx, app.ID, calls); err != nil {
			return err
		}
		row, err := at.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		if err != nil {
			return err
		}
		switch o := row.Owner; {
		case o.State == store.Nobodys && epoch == 0:
			lives, err := e.livesIn(ctx, app, token, app.Residency.Home) // it may have moved since it was remembered
			if err != nil || lives == at {
				return err
			}
			at = lives
		case slices.Contains([]store.OwnerState{store.Leaving, store.Moved}, o.State) && o.Epoch > epoch:
			epoch = o.Epoch
			if at, err = at.env.in(o.Region); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return errHops
}
