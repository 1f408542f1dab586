package profile

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// unsettled reports whether the tombstone of a row is further ahead of this clock than a
// right clock can have set it. While an app moves, its tombstones stay as they are: two
// regions hold them.
func (v *env) unsettled(row store.User) bool {
	return row.Owner.State != store.Leaving && row.Deleted().DeletedUntil > v.now().UnixMilli()+v.reach()
}

// settle replaces the tombstone of a clock that was ahead by one of this clock, so that what
// is received from now on counts. What was received before stays deleted: nobody knows in
// which order that and the deletion happened. The caller draws a ticket, or reads the row
// again.
//
// First it drops the events that the new tombstone would not cover although they were received
// before: those with receipts of the wrong clock. It drops no others, because another process
// may have settled the tombstone in the meantime, and events that were received since count.
func (v *env) settle(ctx context.Context, appID, token string, row store.User) error {
	ahead := row.Deleted()
	v.log.LogAttrs(ctx, slog.LevelWarn, "a deletion is ahead of this clock, events from now on count",
		slog.String("app", appID),
		slog.Time("deletedUntil", time.UnixMilli(ahead.DeletedUntil)))
	if err := v.dropAhead(ctx, appID, token, ahead.DeletedUntil); err != nil {
		return err
	}
	if err := v.store.Users.SettleTombstone(ctx, appID, token, ahead, v.tombstone()); err != nil {
		return err
	}
	settled, err := v.store.Users.TakeTicket(ctx, appID, token)
	if err != nil {
		return err
	}
	empty := history.Manifest{Version: version(settled.Ticket, uncovered)}
	return v.store.Users.ForgetUser(ctx, appID, token, settled.Ticket, empty.AppendBinary(nil))
}

// dropAhead drops a user's events up to a time whose receipts are beyond the reach: wrong clocks
// have stamped them.
func (v *env) dropAhead(ctx context.Context, appID, token string, until int64) error {
	now := func() int64 { return v.now().UnixMilli() }
	return v.store.Events.DropAhead(ctx, appID, token, now(), until, func() int64 { return now() + v.reach() })
}

// tombstone is that of a deletion now.
func (v *env) tombstone() affinity.Tombstone {
	now := v.now().UnixMilli()
	return affinity.Tombstone{DeletedUntil: now, ReceivedUntil: now + v.slack.Milliseconds()}
}

// Settle settles the deletions and opt-outs of an app that a clock which was ahead of this
// one has made, and returns how many they are.
func (e *Engine) Settle(ctx context.Context, app config.App) (int, error) {
	at, err := e.at(app)
	if err != nil || app.Moving() {
		return 0, err
	}
	ahead := map[string]store.User{}
	err = at.env.store.Users.ScanUsers(ctx, app.ID, "", "", 0, store.UserState, func(token string, row store.User) error {
		if at.env.unsettled(row) {
			ahead[token] = row
		}
		return nil
	})
	for token, row := range ahead {
		if err == nil {
			err = at.env.settle(ctx, app.ID, token, row)
		}
	}
	return len(ahead), err
}

// doubt returns the events without receipts that are further ahead of this clock than a right
// one can have stamped them. Nobody knows when such an event was received: as early as its time
// allows. So a deletion that may have come later covers it.
func (v *env) doubt(events []store.LogEvent) []store.LogEvent {
	latest := v.now().UnixMilli() + v.reach()
	for i := range events {
		if events[i].Receipt > latest {
			all := slices.Clone(events)
			for ; i < len(all); i++ {
				if all[i].Receipt > latest {
					all[i].Receipt = 1 // cut to what its time allows
				}
			}
			return all
		}
	}
	return events
}
