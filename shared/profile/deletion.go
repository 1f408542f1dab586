package profile

import (
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// deletion deletes users, and keeps what they have opted out of.
type deletion struct {
	*env
	logs    *logs
	tickets *tickets
	orphans *orphans
	changes *changeList
	linker  *linker
}

func (d *deletion) delete(ctx context.Context, app config.App, token string) (time.Time, error) {
	t, err := d.advance(ctx, app, token)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(t.ReceivedUntil), d.forget(ctx, app, token, d.endLinks)
}

// whole returns the configuration of an app. Callers of an engine without regions know its id alone.
func (d *deletion) whole(ctx context.Context, app config.App) (config.App, error) {
	if app.Owned() {
		return app, nil
	}
	return d.logs.readCached(ctx, app.ID)
}

// advance raises the tombstone to now. That of a token with links is raised only while nobody has drawn a
// ticket since the clock was read, and once what an earlier deletion of a known user left is done.
func (d *deletion) advance(ctx context.Context, app config.App, token string) (affinity.Tombstone, error) {
	app, err := d.whole(ctx, app)
	if err != nil {
		return affinity.Tombstone{}, err
	}
	if !app.Identity.On() {
		t := d.tombstone()
		return t, d.store.Users.AdvanceTombstone(ctx, app.ID, token, t)
	}
	for range maxOptOuts {
		of, err := d.take(ctx, app, token)
		if err != nil {
			return affinity.Tombstone{}, err
		}
		if err := d.endEarlier(ctx, app, token, of); err != nil {
			return affinity.Tombstone{}, err
		}
		t, done, err := of.at.env.store.Users.SetOptOut(ctx, app.ID, token, of.row, of.row.OptedOut, d.tombstone())
		if done || err != nil {
			return t, err
		}
	}
	return affinity.Tombstone{}, fmt.Errorf("delete %s,%s: messages drew tickets %d times", app.ID, token, maxOptOuts)
}

// forget drops what is derived from deleted events, leaves a marker, and lists the user
// as changed. The tombstone must be in the row. others does what is due to other tokens.
func (d *deletion) forget(ctx context.Context, app config.App, token string,
	others func(ctx context.Context, app config.App, token string, of place) error) error {
	app, err := d.whole(ctx, app)
	if err != nil {
		return err
	}
	of, err := d.take(ctx, app, token)
	if err != nil {
		return err
	}
	if err := others(ctx, app, token, of); err != nil {
		return err
	}
	// The manifest is empty but has a version. Without one, a fold that found no
	// manifest before the deletion would find the same now, and commit.
	empty := history.Manifest{Version: version(of.row.Ticket, uncovered)}
	if err := of.at.env.store.Users.ForgetUser(ctx, app.ID, token, of.row.Ticket, empty.AppendBinary(nil)); err != nil {
		return err
	}
	return of.list(ctx, app, token)
}

// maxOptOuts bounds how often a change of an opt-out starts again, because a message
// came first.
const maxOptOuts = 100

// optOut sets the types of events that a user has opted out of, and deletes the user in
// the same instant. A message that saw the former types drew its ticket, and was received,
// before this ticket and this clock. So the tombstone covers what it has dropped, or has
// written.
func (d *deletion) optOut(ctx context.Context, app config.App, token string, types event.Types) (time.Time, error) {
	t, err := d.setOptOut(ctx, app, token, types)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(t.ReceivedUntil), d.forget(ctx, app, token, d.optAlong)
}

// setOptOut sets the types, and returns the tombstone of the same instant.
func (d *deletion) setOptOut(ctx context.Context, app config.App, token string,
	types event.Types) (affinity.Tombstone, error) {
	for range maxOptOuts {
		of, err := d.take(ctx, app, token)
		if err != nil {
			return affinity.Tombstone{}, err
		}
		if err := d.endEarlier(ctx, app, token, of); err != nil {
			return affinity.Tombstone{}, err
		}
		if of.row.OptedOut == types && !of.row.Gone() {
			// An earlier attempt may have ended before it dropped what is derived. Nothing is
			// deleted: the user's events since then count.
			return of.row.Deleted(), nil
		}
		t, done, err := d.setOwnOptOut(ctx, app.ID, token, of, types)
		if done || err != nil {
			return t, err
		}
	}
	return affinity.Tombstone{}, fmt.Errorf("set opt-out of %s,%s: messages drew tickets %d times", app.ID, token,
		maxOptOuts)
}

// restore adds types to those of which the user is out, and covers what t does. A process
// that knows neither has written nothing that counts afterwards, and has dropped nothing
// that would count: the types grow, and so does the tombstone. So t need not cover what is
// on its way, as that of optOut does.
func (d *deletion) restore(ctx context.Context, app config.App, token string, types event.Types,
	t affinity.Tombstone) error {
	if err := d.addOptOut(ctx, app, token, types, t); err != nil {
		return err
	}
	return d.forget(ctx, app, token, d.endLinks)
}

// addOptOut adds the types, and advances the tombstone.
func (d *deletion) addOptOut(ctx context.Context, app config.App, token string, types event.Types,
	t affinity.Tombstone) error {
	for range maxOptOuts {
		of, err := d.take(ctx, app, token)
		if err != nil {
			return err
		}
		users := of.at.env.store.Users
		if types&^of.row.OptedOut == 0 {
			return users.AdvanceTombstone(ctx, app.ID, token, t)
		}
		_, done, err := users.SetOptOut(ctx, app.ID, token, of.row, of.row.OptedOut|types, t)
		if done || err != nil {
			return err
		}
	}
	return fmt.Errorf("restore opt-out of %s,%s: messages drew tickets %d times", app.ID, token, maxOptOuts)
}

// optIn is optOut of no types. It writes nothing for a user who was never out.
func (d *deletion) optIn(ctx context.Context, app config.App, token string) (time.Time, error) {
	row, err := d.rowOf(ctx, app, token)
	if err != nil {
		return time.Time{}, err
	}
	if row.OptedOut == 0 && row.DeletedUntil == 0 {
		return time.Time{}, nil
	}
	return d.optOut(ctx, app, token, 0)
}

func (d *deletion) optedOut(ctx context.Context, app config.App, token string) (event.Types, time.Time, error) {
	row, err := d.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err != nil || row.DeletedUntil == 0 {
		return row.OptedOut, time.Time{}, err
	}
	return row.OptedOut, time.UnixMilli(row.ReceivedUntil), nil
}

func (d *deletion) purge(ctx context.Context, app config.App, token string, until time.Time) (int, error) {
	if err := d.purgeLinked(ctx, app, token); err != nil {
		return 0, err
	}
	return d.purgeOwn(ctx, app, token, until)
}

// purgeOwn is purge of what lies under the token itself.
func (d *deletion) purgeOwn(ctx context.Context, app config.App, token string, until time.Time) (int, error) {
	if _, err := d.store.Segments.BlankSegmentToken(ctx, app.ID, token); err != nil {
		return 0, err
	}
	if err := d.purgeTypes(ctx, app.ID, token); err != nil {
		return 0, err
	}
	blocks, err := d.store.Histories.ListBlocks(ctx, app.ID, token)
	if err != nil {
		return 0, err
	}
	if err := d.orphans.delete(ctx, app.ID, map[string][]history.BlockID{token: blocks}); err != nil {
		return 0, err
	}
	row, err := d.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	if err == nil && d.unsettled(row) {
		if err = d.settle(ctx, app.ID, token, row); err == nil {
			row, err = d.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
		}
	}
	if err != nil {
		return 0, err
	}
	covered := coveredUntil(row, until)
	if covered.DeletedUntil <= 0 {
		return 0, nil
	}
	n, err := d.store.Events.PurgeLog(ctx, app.ID, token, covered)
	if err != nil {
		return n, err
	}
	// Events of a wrong clock would count in the future. Nobody knows when they were received.
	return n, d.dropAhead(ctx, app.ID, token, history.End.Time-1)
}

// coveredUntil is what the deletions of a row cover, up to a time.
func coveredUntil(row store.User, until time.Time) affinity.Tombstone {
	covered := row.Deleted()
	covered.DeletedUntil = min(covered.DeletedUntil, until.UnixMilli())
	covered.ReceivedUntil = min(covered.ReceivedUntil, until.UnixMilli())
	return covered
}

// purgeTypes deletes events of types that the user is out of, and that no tombstone covers:
// those that were there before a restored opt-out. As a writer does, it draws a ticket after
// it has seen the events, so a later opt-in covers them.
func (d *deletion) purgeTypes(ctx context.Context, appID, token string) error {
	row, err := d.store.Users.ReadPrimary(ctx, appID, token, store.UserState)
	if err != nil || row.OptedOut == 0 {
		return err
	}
	events, err := d.store.Events.EventsOf(ctx, appID, token, row.OptedOut)
	if err != nil || len(events) == 0 {
		return err
	}
	types := row.OptedOut
	if row, err = d.store.Users.TakeTicket(ctx, appID, token); err != nil || row.OptedOut&types != types {
		return err // the change that came between has a purge of its own
	}
	app, err := d.logs.readCached(ctx, appID)
	if err != nil {
		return err
	}
	return d.logs.of(app).DropExcluded(ctx, events, func(string) store.User { return row })
}
