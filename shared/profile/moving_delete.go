package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store"
)

// Deletions and opt-outs of users whose app moves. Either lies in the row, and counts once
// the row that has it is the one that counts. So each change is made first, and looked for at
// a ticket that counts: the row may have been replaced in between by that with which the
// user arrived.

// exclude calls raise in the region where a user is owned, until a ticket that counts shows
// a row of which done is true. Then it drops what is derived from deleted events.
func (e *Engine) exclude(ctx context.Context, app config.App, token string, raise func(at *Engine) error, done func(store.User) bool) error {
	at, need := e, int64(0)
	for range maxHops {
		if err := raise(at); err != nil {
			return err
		}
		row, err := at.takeOwned(ctx, app, token, need, nil)
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
			return at.deletion.forget(ctx, app.ID, token)
		}
	}
	return fmt.Errorf("delete or opt out %s,%s: %w", app.ID, token, errHops)
}

func (e *Engine) deleteMoving(ctx context.Context, app config.App, token string) (time.Time, error) {
	t := e.deletion.tombstone()
	return time.UnixMilli(t.ReceivedUntil), e.raiseMoving(ctx, app, token, t)
}

func (e *Engine) raiseMoving(ctx context.Context, app config.App, token string, t affinity.Tombstone) error {
	raise := func(at *Engine) error { return at.env.store.AdvanceTombstone(ctx, app.ID, token, t) }
	return e.exclude(ctx, app, token, raise, func(row store.User) bool { return row.Covers(t) })
}

func (e *Engine) optOutMoving(ctx context.Context, app config.App, token string, types event.Types) (time.Time, error) {
	var until time.Time
	set := func(at *Engine) error {
		t, err := at.deletion.setOptOut(ctx, app.ID, token, types)
		until = time.UnixMilli(t.ReceivedUntil)
		return err
	}
	err := e.exclude(ctx, app, token, set, func(row store.User) bool {
		return row.OptedOut == types && row.ReceivedUntil >= until.UnixMilli()
	})
	return until, err
}

func (e *Engine) optInMoving(ctx context.Context, app config.App, token string) (time.Time, error) {
	found, err := e.locate(ctx, app, token, store.UserState)
	if err != nil || found.row.OptedOut == 0 && found.row.DeletedUntil == 0 {
		return time.Time{}, err
	}
	return e.optOutMoving(ctx, app, token, 0)
}

func (e *Engine) restoreMoving(ctx context.Context, app config.App, token string, types event.Types, t affinity.Tombstone) error {
	add := func(at *Engine) error { return at.deletion.addOptOut(ctx, app.ID, token, types, t) }
	return e.exclude(ctx, app, token, add, func(row store.User) bool { return row.Covers(t) && types&^row.OptedOut == 0 })
}

func (e *Engine) optedOutMoving(ctx context.Context, app config.App, token string) (event.Types, time.Time, error) {
	found, err := e.locate(ctx, app, token, store.UserState)
	if err != nil || found.row.DeletedUntil == 0 {
		return found.row.OptedOut, time.Time{}, err
	}
	return found.row.OptedOut, time.UnixMilli(found.row.ReceivedUntil), nil
}

// purgeMoving removes what a deletion covers in both regions: a copy may hold it, too.
func (e *Engine) purgeMoving(ctx context.Context, app config.App, token string, until time.Time) (int, error) {
	other, err := e.env.other(app)
	if err != nil {
		return 0, err
	}
	purged := 0
	for _, at := range []*Engine{e, other} {
		n, err := at.deletion.purge(ctx, app.ID, token, until)
		if err != nil {
			return purged, err
		}
		purged = max(purged, n)
	}
	return purged, nil
}
