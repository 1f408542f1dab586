package profile

import (
	"context"
	"fmt"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// The opt-out of a known user takes along the anonymous tokens that nobody else has used: each by a
// change of its own, which notes whose it is. On a token that others have used, only the user's intervals
// are dead. The opt-in takes the same tokens along, and no token that has opted out by itself.

// optAlong does what the change of an opt-out does to other tokens. of has the row of a ticket drawn after the change.
func (d *deletion) optAlong(ctx context.Context, app config.App, token string, of place) error {
	cell, err := linksOf(app.ID, token, of.row)
	if err != nil || cell.Role != links.Known {
		return d.endLinks(ctx, app, token, of)
	}
	for _, l := range cell.List {
		along, err := d.takeAlong(ctx, app, l.Token, token, of.row.OptedOut)
		if err == nil && !along {
			err = d.linker.kill(ctx, app, l.Token, token, of.row.Deleted())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeAlong changes the opt-out of a token with that of a known user, and reports whether it does.
func (d *deletion) takeAlong(ctx context.Context, app config.App, token, known string,
	types event.Types) (bool, error) {
	for range maxOptOuts {
		row, err := d.rowOf(ctx, app, token)
		if err != nil {
			return false, err
		}
		cell, err := linksOf(app.ID, token, row)
		if err != nil {
			return false, err
		}
		if _, changes := cell.Along(known, types, exclusionOf(row)); !changes {
			if cell.OutBy != known {
				return false, nil
			}
			return true, d.forget(ctx, app, token, d.endLinks) // an earlier attempt may have ended before
		}
		done, err := d.tryAlong(ctx, app, token, known, types)
		if err != nil {
			return false, err
		}
		if done {
			return true, d.forget(ctx, app, token, d.endLinks)
		}
	}
	return false, fmt.Errorf("set opt-out of %s,%s: messages drew tickets %d times", app.ID, token, maxOptOuts)
}

// tryAlong makes the change on condition of a ticket of the token, and of the entries that the ticket
// has read. False: not now.
func (d *deletion) tryAlong(ctx context.Context, app config.App, token, known string, types event.Types) (bool, error) {
	of, err := d.take(ctx, app, token)
	if err != nil {
		return false, err
	}
	cell, err := linksOf(app.ID, token, of.row)
	if err != nil {
		return false, err
	}
	next, changes := cell.Along(known, types, exclusionOf(of.row))
	if !changes {
		return false, nil
	}
	users := of.at.env.store.Users
	_, done, err := users.SetOptOutLinked(ctx, app.ID, token, of.row, types, d.tombstone(), next.Append(nil))
	return done, err
}

// setOwnOptOut is SetOptOut of a token that changes its opt-out by itself. of has the row of its ticket.
func (d *deletion) setOwnOptOut(ctx context.Context, appID, token string, of place,
	types event.Types) (affinity.Tombstone, bool, error) {
	users := of.at.env.store.Users
	cell, err := linksOf(appID, token, of.row)
	if err != nil {
		return affinity.Tombstone{}, false, err
	}
	if next, apart := cell.OptedApart(); apart {
		return users.SetOptOutLinked(ctx, appID, token, of.row, types, d.tombstone(), next.Append(nil))
	}
	return users.SetOptOut(ctx, appID, token, of.row, types, d.tombstone())
}

// purgeAlong purges a token that the opt-out of a known user may have taken along. The lists of two
// tokens may name each other, so it goes no further.
func (d *deletion) purgeAlong(ctx context.Context, app config.App, token string) error {
	row, err := d.rowOf(ctx, app, token)
	if err != nil || row.DeletedUntil == 0 {
		return err
	}
	until := time.UnixMilli(row.ReceivedUntil)
	if app.Owned() {
		entry, err := d.in(app.Region)
		if err == nil {
			_, err = enRoute{entry}.purgeOwn(ctx, app, token, until)
		}
		return err
	}
	_, err = d.purgeOwn(ctx, app, token, until)
	return err
}
