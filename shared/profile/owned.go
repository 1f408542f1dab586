package profile

import (
	"context"
	"errors"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// The rows of linked tokens may be in different regions while their app moves, and each may leave its region at any
// time. This file draws tickets and reads rows where each token is owned. Who then changes the links of a row does so
// on condition that the owner is still the one that the row named. So the row counts at that instant, and what it holds
// is carried along when the token moves afterwards.

// entry returns the engine of the region whose row of a token is asked first. A token that is new to an app whose users
// have regions of their own begins in that of the app.
func (v *env) entry(ctx context.Context, app config.App, token string) (*Engine, error) {
	switch {
	case app.Residency.On():
		return v.regions.home(ctx, app, token, app.Residency.Home)
	case app.Moving():
		return v.in(app.Region)
	}
	return v.engine, nil
}

// anywhere calls draw with the engine of the region that owns a token: it draws tickets there. need is the epoch that
// the row must have reached.
func (v *env) anywhere(ctx context.Context, app config.App, token string,
	draw func(at *Engine, need int64) error) error {
	at, err := v.entry(ctx, app, token)
	if err != nil {
		return err
	}
	need := int64(0)
	for range maxHops {
		err := draw(at, need)
		m, moved := errors.AsType[elsewhere](err)
		if !moved {
			return err
		}
		if at, err = at.env.in(m.region); err != nil {
			return err
		}
		need = m.epoch
	}
	return errHops
}

// linkTaker returns what draws tickets in the region of e and reads the links of the token, with a mark if asked.
func (e *Engine) linkTaker(app config.App, mark bool, need int64) taker {
	users := e.env.store.Users
	resting, owned := users.TakeLinked, users.TakeOwnedLinks
	if mark {
		resting, owned = users.TakeLinkedMark, users.TakeOwnedMark
	}
	if !app.Owned() {
		return resting
	}
	return func(ctx context.Context, _, token string) (store.User, error) {
		return e.takeOwned(ctx, app, token, need, nil, owned)
	}
}

// drawLinked draws a ticket of a token where it is owned, with its links and at which no block covers any of the
// events, with a mark if asked.
func (v *env) drawLinked(ctx context.Context, app config.App, token string, mark bool,
	events []history.Pos) (found place, err error) {
	err = v.anywhere(ctx, app, token, func(at *Engine, need int64) error {
		u := &user{token: token}
		err := at.writer.tickets.drawWith(ctx, app.ID, u, events, at.linkTaker(app, mark, need))
		found = place{at: at, row: u.row}
		return err
	})
	return found, err
}

// take draws a ticket for a user whose tombstone is not ahead of this clock, where the user is owned, and reads the
// links.
func (v *env) take(ctx context.Context, app config.App, token string) (found place, err error) {
	err = v.anywhere(ctx, app, token, func(at *Engine, need int64) error {
		take := at.linkTaker(app, false, need)
		row, err := take(ctx, app.ID, token)
		if err == nil && at.env.unsettled(row) {
			if err = at.env.settle(ctx, app.ID, token, row); err == nil {
				row, err = take(ctx, app.ID, token)
			}
		}
		found = place{at: at, row: row}
		return err
	})
	return found, err
}

// rowToChange reads the row of a token that counts. It completes an arrival that a mover has left halfway, and a token
// that has no row begins where new users do.
func (v *env) rowToChange(ctx context.Context, app config.App, token string) (place, error) {
	if !app.Owned() {
		row, err := v.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		return place{at: v.engine, row: row}, err
	}
	entry, err := v.in(app.Region)
	if err != nil {
		return place{}, err
	}
	found, err := entry.settled(ctx, app, token)
	if err != nil || found.at != nil && found.row.Owner.Here() {
		return found, err
	}
	return v.drawLinked(ctx, app, token, false, nil)
}

// rowOf reads the row of a token that counts, or that has all that was acknowledged until another one does.
func (v *env) rowOf(ctx context.Context, app config.App, token string) (store.User, error) {
	if !app.Owned() {
		return v.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	}
	entry, err := v.in(app.Region)
	if err != nil {
		return store.User{}, err
	}
	found, err := entry.locate(ctx, app, token, store.UserState)
	return found.row, err
}

// placesOf reads the rows of tokens, each where it counts. It returns no entry for a token without a row.
func (v *env) placesOf(ctx context.Context, app config.App, tokens []string,
	parts store.UserParts) (map[string]place, error) {
	found := make(map[string]place, len(tokens))
	if !app.Owned() {
		read := v.store.Users.ReadUserStates
		switch parts {
		case store.UserHistory:
			read = v.store.Users.ReadUserHistories
		case store.UserExposures:
			read = v.store.Users.ReadUserExposures
		}
		rows, err := read(ctx, app.ID, distinct(tokens))
		for token, row := range rows {
			found[token] = place{at: v.engine, row: row}
		}
		return found, err
	}
	entry, err := v.in(app.Region)
	if err != nil {
		return nil, err
	}
	locate := func(ctx context.Context, token string) (place, error) { return entry.locate(ctx, app, token, parts) }
	err = each(ctx, tokens, locate, func(token string, at place) error {
		if at.at != nil && at.row.Exists {
			found[token] = at
		}
		return nil
	})
	return found, err
}

// logsAnywhere returns the engines of the regions whose logs may hold events of a token that is in at, that one first.
func logsAnywhere(app config.App, at *Engine) ([]*Engine, error) {
	if !app.Owned() {
		return []*Engine{at}, nil
	}
	others, err := at.env.others(app)
	return append([]*Engine{at}, others...), err
}
