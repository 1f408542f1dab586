package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// Deletions and opt-outs of users whose app moves. Either lies in the row, and counts once
// the row that has it is the one that counts. So each change is made first, and looked for at
// a ticket that counts: the row may have been replaced in between by that with which the
// user arrived.

// exclude calls raise in the region where a user is owned, until a ticket that counts shows
// a row of which done is true. Then it drops what is derived from deleted events.
func (e *Engine) exclude(ctx context.Context, app config.App, token string, raise func(at *Engine) error,
	done func(store.User) bool) error {
	at, err := e.env.entry(ctx, app, token)
	if err != nil {
		return err
	}
	need := int64(0)
	for range maxHops {
		if err := raise(at); err != nil {
			return err
		}
		row, err := at.takeOwned(ctx, app, token, need, nil, at.env.store.Users.TakeOwned)
		if m, moved := errors.AsType[elsewhere](err); moved {
			if at, err = at.env.in(m.region); err != nil {
				return err
			}
			need = m.epoch
			continue
		}
		if err != nil {
			return err
		}
		if done(row) {
			return at.deletion.forget(ctx, app, token, at.deletion.endLinks)
		}
	}
	return fmt.Errorf("delete or opt out %s,%s: %w", app.ID, token, errHops)
}

// delete of an app with identity depends on a ticket and on the owner, so that it needs no look afterwards. So does a
// change of an opt-out of any app.
func (e enRoute) delete(ctx context.Context, app config.App, token string) (time.Time, error) {
	if app.Identity.On() {
		return e.deletion.delete(ctx, app, token)
	}
	t := e.deletion.tombstone()
	return time.UnixMilli(t.ReceivedUntil), e.raise(ctx, app, token, t)
}

func (e enRoute) raise(ctx context.Context, app config.App, token string, t affinity.Tombstone) error {
	raise := func(at *Engine) error { return at.env.store.Users.AdvanceTombstone(ctx, app.ID, token, t) }
	return e.exclude(ctx, app, token, raise, func(row store.User) bool { return row.Covers(t) })
}

func (e enRoute) optOut(ctx context.Context, app config.App, token string, types event.Types) (time.Time, error) {
	return e.deletion.optOut(ctx, app, token, types)
}

func (e enRoute) optIn(ctx context.Context, app config.App, token string) (time.Time, error) {
	found, err := e.locate(ctx, app, token, store.UserState)
	if err != nil || found.row.OptedOut == 0 && found.row.DeletedUntil == 0 {
		return time.Time{}, err
	}
	return e.optOut(ctx, app, token, 0)
}

func (e enRoute) restore(ctx context.Context, app config.App, token string, types event.Types,
	t affinity.Tombstone) error {
	add := func(at *Engine) error { return at.deletion.addOptOut(ctx, app, token, types, t) }
	return e.exclude(ctx, app, token, add, func(row store.User) bool { return row.Covers(t) && types&^row.OptedOut == 0 })
}

func (e enRoute) optedOut(ctx context.Context, app config.App, token string) (event.Types, time.Time, error) {
	found, err := e.locate(ctx, app, token, store.UserState)
	if err != nil || found.row.DeletedUntil == 0 {
		return found.row.OptedOut, time.Time{}, err
	}
	return found.row.OptedOut, time.UnixMilli(found.row.ReceivedUntil), nil
}

// purge removes what a deletion covers in all regions of the app: a copy may hold it, too. The row
// of the owner decides in both, because the row that the user has left says nothing of later
// deletions.
func (e enRoute) purge(ctx context.Context, app config.App, token string, until time.Time) (int, error) {
	if err := e.deletion.purgeLinked(ctx, app, token); err != nil {
		return 0, err
	}
	return e.purgeOwn(ctx, app, token, until)
}

// purgeOwn is purge of what lies under the token itself.
func (e enRoute) purgeOwn(ctx context.Context, app config.App, token string, until time.Time) (int, error) {
	all, err := logsAnywhere(app, e.Engine)
	if err != nil {
		return 0, err
	}
	owner, err := e.settled(ctx, app, token)
	if err != nil {
		return 0, err
	}
	purged := 0
	for _, at := range all {
		n := 0
		if at == owner.at {
			n, err = at.deletion.purgeOwn(ctx, app, token, until)
		} else {
			n, err = e.purgeLeftovers(ctx, app, at, token, until, owner.row)
		}
		if err != nil {
			return purged, err
		}
		purged = max(purged, n)
	}
	return purged, nil
}

// settled is locate. It completes an arrival that a mover has left halfway.
func (e *Engine) settled(ctx context.Context, app config.App, token string) (place, error) {
	for range maxHops {
		found, err := e.locate(ctx, app, token, store.UserState)
		if err != nil || !found.departed {
			return found, err
		}
		to, err := found.at.env.in(found.row.Owner.Region)
		if err == nil {
			err = to.complete(ctx, app, token)
		}
		if err != nil {
			return place{}, err
		}
	}
	return place{}, errHops
}

// purgeLeftovers is purge in the region of at, which is not that of the owner; owner is the row
// that counts. Blocks and profiles that the user has left there may hold deleted events, and
// nobody needs them. Of the log it removes what the owner's row excludes, and nothing else:
// other rows may be those of a message that is on its way.
func (e *Engine) purgeLeftovers(ctx context.Context, app config.App, at *Engine, token string, until time.Time,
	owner store.User) (int, error) {
	s := at.env.store
	if _, err := s.Segments.BlankSegmentToken(ctx, app.ID, token); err != nil {
		return 0, err
	}
	if err := e.purgeLeftTypes(ctx, app, at, token, owner); err != nil {
		return 0, err
	}
	covered := coveredUntil(owner, until)
	if covered.DeletedUntil <= 0 {
		return 0, nil
	}
	row, err := s.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err != nil {
		return 0, err
	}
	if row.Owner.State == store.Moved && row.Owner.Epoch <= owner.Owner.Epoch {
		if err := s.Events.ForgetLeft(ctx, app.ID, token, row.Owner); err != nil {
			return 0, err
		}
	}
	return s.Events.PurgeLog(ctx, app.ID, token, covered)
}

// purgeLeftTypes is purgeTypes in the region of at, which is not that of the owner. The ticket
// that it draws is one of the owner's.
func (e *Engine) purgeLeftTypes(ctx context.Context, app config.App, at *Engine, token string, owner store.User) error {
	if owner.OptedOut == 0 {
		return nil
	}
	events, err := at.env.store.Events.EventsOf(ctx, app.ID, token, owner.OptedOut)
	if err != nil || len(events) == 0 {
		return err
	}
	row, err := e.takeAnywhere(ctx, app, token)
	if err != nil || row.OptedOut&owner.OptedOut != owner.OptedOut {
		return err // the change that came between has a purge of its own
	}
	return at.logs.of(app).DropExcluded(ctx, events, func(string) store.User { return row })
}

// takeAnywhere draws a ticket where the user is owned.
func (e *Engine) takeAnywhere(ctx context.Context, app config.App, token string) (store.User, error) {
	var row store.User
	err := e.env.anywhere(ctx, app, token, func(at *Engine, need int64) (err error) {
		row, err = at.takeOwned(ctx, app, token, need, nil, at.env.store.Users.TakeOwned)
		return err
	})
	return row, err
}

// purgeArrived removes from the log of the region of e, which owns the user, what the row
// excludes: a copy may have brought it after a purge had ended.
func (e *Engine) purgeArrived(ctx context.Context, app config.App, token string) error {
	row, err := e.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err != nil || !row.Owner.Here() {
		return err
	}
	if _, err := e.deletion.dropDead(ctx, app, token, row); err != nil {
		return err
	}
	if len(row.Consents) > 0 || app.Purposes.On() {
		if _, err := e.deletion.purgeUnkept(ctx, app, token); err != nil {
			return err
		}
	}
	if row.DeletedUntil == 0 { // an opt-out sets it, too
		return nil
	}
	if err := e.deletion.purgeTypes(ctx, app.ID, token); err != nil {
		return err
	}
	_, err = e.env.store.Events.PurgeLog(ctx, app.ID, token, row.Deleted())
	return err
}
