package profile

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// While an app moves, a ticket counts only if the row says that the user is owned there.
// This file draws such tickets, gives new users an owner, and completes the hand-over of
// users whom a mover has left halfway.

// maxOwnerChanges bounds how often a ticket is drawn again because the owner changed.
const maxOwnerChanges = 50

// takeOwned draws a user's ticket in the region of e. logged are the events that the caller
// has written to the log here, before. need is the epoch that the row must have reached, of
// the row that named this region. An error of type elsewhere names another region: the
// caller logs the events there, and draws the ticket there.
func (e *Engine) takeOwned(ctx context.Context, app config.App, token string, need int64, logged []*store.LogEvent) (store.User, error) {
	both := len(logged) == 0 // the events are in the logs of both regions
	for range maxOwnerChanges {
		row, err := e.env.store.TakeOwned(ctx, app.ID, token)
		if err != nil {
			return row, err
		}
		switch o := row.Owner; {
		case o.Epoch < need:
			// The row does not count yet, and the other one does no more.
			err = e.complete(ctx, app, token)
		case o.State == store.Own, o.State == store.Leaving && both:
			return row, nil
		case o.State == store.Leaving:
			// The copy of the log may have passed the events. A new ticket is one at which both
			// logs hold them.
			both, err = true, e.logBoth(ctx, app, o.Region, logged)
		case o.State == store.Moved:
			return row, elsewhere{o.Region, o.Epoch}
		default:
			var born bool
			if born, err = e.beget(ctx, app, token); born {
				return row, nil
			}
		}
		if err != nil {
			return row, err
		}
	}
	return store.User{}, fmt.Errorf("draw a ticket of %s,%s: the owner of the user changed %d times", app.ID, token, maxOwnerChanges)
}

// birthEpoch is the epoch of a row that gives a user the first owner.
const birthEpoch = 1

// beget gives a user whose row is nobody's an owner. e is the engine of the entry: who comes
// to another region was sent there by a row with an epoch. It reports whether the owner is
// this region; otherwise the caller draws a ticket again, which says who it is.
func (e *Engine) beget(ctx context.Context, app config.App, token string) (bool, error) {
	births, err := e.env.in(app.Births())
	if err != nil {
		return false, err
	}
	if births == e {
		return e.env.store.SetOwner(ctx, app.ID, token, store.Owner{}, store.Owner{Epoch: birthEpoch, State: store.Own})
	}
	_, err = e.env.store.SetOwner(ctx, app.ID, token, store.Owner{},
		store.Owner{Epoch: birthEpoch, State: store.Moved, Region: births.env.region})
	return false, err
}

// logBoth writes events to the log of the other region.
func (e *Engine) logBoth(ctx context.Context, app config.App, region string, logged []*store.LogEvent) error {
	to, err := e.env.in(region)
	if err != nil {
		return err
	}
	events := make([]store.LogEvent, len(logged))
	for i, ev := range logged {
		events[i] = *ev
	}
	_, refused, err := to.logs.append(ctx, app, events)
	if err == nil && len(refused) > 0 {
		err = refused
	}
	return err
}

// complete makes the row of this region the one that counts, if the other region's row
// says that the user has moved here. Whatever was acknowledged is in the log of this region
// by then. Anyone may do it at any time: the row arrives once.
func (e *Engine) complete(ctx context.Context, app config.App, token string) error {
	other, err := e.env.other(app)
	if err != nil {
		return err
	}
	// The row is read after it has become Moved: what it holds now nobody changes any more
	// who counts.
	old, err := other.env.store.ReadPrimary(ctx, app.ID, token, store.UserSession)
	if err != nil || old.Owner.State != store.Moved || old.Owner.Region != e.env.region {
		return err
	}
	_, err = e.env.store.Arrive(ctx, app.ID, token, e.arrival(old))
	return err
}

// arrival returns the row with which a user arrives who had the row old. Its ticket is one
// that nobody has drawn. The stored profile counts every event of the tickets up to its own,
// so it is valid only at the last one.
func (e *Engine) arrival(old store.User) store.Arrival {
	row := old
	row.Ticket++
	row.Profile, row.Summary, row.Session, row.Counted = nil, nil, nil, nil
	if len(old.Profile) > 0 && old.ProfileTicket == old.Ticket {
		if p, err := e.env.limits.bounds.Parse(old.Profile, 0); err == nil {
			row.Profile, row.Summary, row.Session = old.Profile, p.Outline().AppendBinary(nil), old.Session
		}
	}
	none := history.Manifest{Version: version(row.Ticket, uncovered)}
	return store.Arrival{Epoch: old.Owner.Epoch, Row: row, Manifest: none.AppendBinary(nil)}
}
