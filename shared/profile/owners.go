package profile

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// While an app moves, a ticket counts only if the row says that the user is owned there.
// This file draws such tickets, gives new users an owner, and completes the hand-over of
// users whom a mover has left halfway.

// maxOwnerChanges bounds how often a ticket is drawn again because the owner changed.
const maxOwnerChanges = 50

// relog brings events of a user that are in the log of one region to the log of another one,
// which the user is about to move to. row is that of a ticket which counts.
type relog func(ctx context.Context, to *Engine, row store.User) error

// takeOwned draws a user's ticket in the region of e. log brings the events that are in
// the log here to another one, too; nil if the ticket is of no events. need is the epoch that
// the row must have reached, of the row that named this region. An error of type elsewhere
// names another region: the caller logs the events there, and draws the ticket there. take is
// one that reads the owner.
func (e *Engine) takeOwned(ctx context.Context, app config.App, token string, need int64, log relog,
	take taker) (store.User, error) {
	both := log == nil // the events are in the logs of both regions
	for range maxOwnerChanges {
		row, err := take(ctx, app.ID, token)
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
			var to *Engine
			if to, err = e.env.in(o.Region); err == nil {
				both, err = true, log(ctx, to, row)
			}
		case o.State == store.Moved:
			return row, elsewhere{o.Region, needed(app, o)}
		default:
			var born bool
			if born, err = e.assignOwner(ctx, app, token); born {
				return row, nil
			}
			if _, away := errors.AsType[elsewhere](err); away {
				return row, err
			}
		}
		if err != nil {
			return row, err
		}
	}
	return store.User{}, fmt.Errorf("draw a ticket of %s,%s: the owner of the user changed %d times", app.ID,
		token, maxOwnerChanges)
}

// birthEpoch is the epoch of a row that gives a user the first owner.
const birthEpoch = 1

// assignOwner gives a user whose row is nobody's an owner. e is the engine of the entry: who comes
// to another region was sent there by a row with an epoch. It reports whether the owner is
// this region; otherwise the caller draws a ticket again, which says who it is.
func (e *Engine) assignOwner(ctx context.Context, app config.App, token string) (bool, error) {
	if app.Residency.On() {
		return e.adopt(ctx, app, token)
	}
	births, err := e.env.in(app.Births())
	if err != nil {
		return false, err
	}
	if births == e {
		return e.env.store.Users.SetOwner(ctx, app.ID, token, store.Owner{}, store.Owner{Epoch: birthEpoch, State: store.Own})
	}
	_, err = e.env.store.Users.SetOwner(ctx, app.ID, token, store.Owner{},
		store.Owner{Epoch: birthEpoch, State: store.Moved, Region: births.env.region})
	return false, err
}

// counting returns those of some events that a row does not exclude. What it excludes never
// counts again: the tombstone of a later opt-in covers it.
func counting(events []*store.LogEvent, row store.User) []store.LogEvent {
	var kept []store.LogEvent
	for _, ev := range events {
		if !row.Excludes(ev.Type, ev.Time, ev.ReceivedAt()) {
			kept = append(kept, *ev)
		}
	}
	return kept
}

// relogEvents writes events of a message.
func relogEvents(app config.App, events []*store.LogEvent) relog {
	return func(ctx context.Context, to *Engine, row store.User) error {
		kept := counting(events, row)
		if len(kept) == 0 {
			return nil
		}
		_, refused, err := to.logs.append(ctx, app, kept)
		if err == nil && len(refused) > 0 {
			err = refused
		}
		return err
	}
}

// relogCopies copies events of a user that may be in the log of the region of e, for a message
// that does not say how they are written there.
func (e *Engine) relogCopies(app config.App, token string, events []*store.LogEvent) relog {
	return func(ctx context.Context, to *Engine, row store.User) error {
		kept := counting(events, row)
		if len(kept) == 0 {
			return nil
		}
		at := make([]history.Pos, len(kept))
		for i := range kept {
			at[i] = position(&kept[i])
		}
		return to.env.store.Events.CopyEventsFrom(ctx, e.env.store, app.ID, app.Log, token, at)
	}
}

// complete makes the row of this region the one that counts, if the other region's row
// says that the user has moved here. Whatever was acknowledged is in the log of this region
// by then. Anyone may do it at any time: the row arrives once.
func (e *Engine) complete(ctx context.Context, app config.App, token string) error {
	others, err := e.env.others(app)
	if err != nil {
		return err
	}
	var last store.User
	var left *Engine
	for _, other := range others {
		// The row is read after it has become Moved: what it holds now nobody changes any more
		// who counts.
		old, err := other.env.store.Users.ReadPrimary(ctx, app.ID, token, store.UserArrival)
		if err != nil {
			return err
		}
		if old.Owner.State == store.Moved && old.Owner.Region == e.env.region && needed(app, old.Owner) > last.Owner.Epoch {
			last, left = old, other
		}
	}
	if last.Owner.Epoch == 0 {
		return nil
	}
	return e.listed(ctx, app, token, left, func() error {
		_, err := e.env.store.Users.Arrive(ctx, app.ID, token, e.arrival(last))
		return err
	})
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
