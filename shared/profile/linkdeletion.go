package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// A deletion of an anonymous token ends its links by the tombstone alone, and marks the known users.
// One of a known user takes along what other tokens did in the intervals of the links: these are
// dead from then on.

// endLinks ends the links of a user who was deleted or has changed their opt-out. of has the row of a
// ticket drawn after the tombstone.
func (d *deletion) endLinks(ctx context.Context, app config.App, token string, of place) error {
	cell, err := linksOf(app.ID, token, of.row)
	if err != nil {
		return err
	}
	switch cell.Role {
	case links.Anonymous:
		return d.linker.markOwed(ctx, app, token, of, func(o links.Owed) bool { return !o.Dead })
	case links.Known:
		for _, l := range cell.List {
			if err := d.linker.kill(ctx, app, l.Token, token, of.row.Deleted()); err != nil {
				return err
			}
		}
	}
	return nil
}

// endEarlier does endLinks for the tombstone that the row of a known user has already. Otherwise a deletion
// that died would be completed by a later one, whose tombstone takes along what other tokens did in between.
func (d *deletion) endEarlier(ctx context.Context, app config.App, token string, of place) error {
	if of.row.DeletedUntil == 0 || len(of.row.Links) == 0 {
		return nil
	}
	app, err := d.whole(ctx, app)
	if err != nil {
		return err
	}
	return d.endLinks(ctx, app, token, of)
}

// purgeLinked removes what other tokens did in the intervals of a deleted known user. It ends the links once
// more: a process may have made one by evidence from before the deletion since.
func (d *deletion) purgeLinked(ctx context.Context, app config.App, token string) error {
	row, err := d.rowOf(ctx, app, token)
	if err != nil || len(row.Links) == 0 || row.DeletedUntil == 0 {
		return err
	}
	cell, err := linksOf(app.ID, token, row)
	if err != nil {
		return err
	}
	app, err = d.whole(ctx, app)
	if err != nil {
		return err
	}
	if cell.Role == links.Anonymous {
		return d.purgeDead(ctx, app, token)
	}
	for _, l := range cell.List {
		if err := d.linker.kill(ctx, app, l.Token, token, row.Deleted()); err != nil {
			return err
		}
		if err := d.purgeDead(ctx, app, l.Token); err != nil {
			return err
		}
		if err := d.purgeAlong(ctx, app, l.Token); err != nil {
			return err
		}
	}
	return nil
}

// purgeDead removes the dead events of a token where its log may have any.
func (d *deletion) purgeDead(ctx context.Context, app config.App, token string) error {
	of, err := d.rowToChange(ctx, app, token)
	if err != nil {
		return err
	}
	both, err := logsAnywhere(app, of.at)
	if err != nil {
		return err
	}
	for _, at := range both {
		if err := at.deletion.purgeDeadOf(ctx, app, token, of.row); err != nil {
			return err
		}
	}
	return nil
}

// purgeDeadOf removes the dead events of a token from the region of d: the rows of the log, and the blocks that may
// hold some. Nobody reads these any more. row is that of the owner.
func (d *deletion) purgeDeadOf(ctx context.Context, app config.App, token string, row store.User) error {
	dead, err := d.dropDead(ctx, app, token, row)
	if err != nil || len(dead) == 0 {
		return err
	}
	here, err := d.store.Users.ReadPrimary(ctx, app.ID, token, store.UserState)
	switch {
	case err != nil:
		return err
	case here.Owner.Here(), !app.Owned():
		return d.tickets.removeBlocks(ctx, app.ID, token, func(b history.Block) bool {
			return slices.ContainsFunc(dead, func(r links.DeadRange) bool { return b.From.Time < r.To && r.From <= b.Newest })
		})
	case here.Owner.State == store.Moved && here.Owner.Epoch <= row.Owner.Epoch: // nobody needs the blocks here
		return d.store.Events.ForgetLeft(ctx, app.ID, token, here.Owner)
	}
	return nil
}

// dropDead removes the dead events of a token from the log of the region of d, and returns where they may have been.
func (d *deletion) dropDead(ctx context.Context, app config.App, token string,
	row store.User) ([]links.DeadRange, error) {
	cell, err := linksOf(app.ID, token, row)
	dead := cell.DeadRanges()
	if err != nil || len(dead) == 0 {
		return nil, err
	}
	found := deadOf{}
	ranges := make([]store.UserRange, len(dead))
	for i, r := range dead {
		ranges[i] = store.UserRange{User: token, From: history.Pos{Time: r.From}, To: history.Pos{Time: r.To}}
	}
	log := d.logs.of(app)
	err = log.ReadObjects(ctx, ranges, func(_ string, r store.LogRow) error {
		found.add(&cell, &store.LogEvent{User: token, Time: r.Time, ID: r.ID, Receipt: max(r.Receipt(), 1)})
		return nil
	})
	if err == nil {
		err = found.drop(ctx, log)
	}
	return dead, err
}

// deadOf are events that were deleted with a known user, by the deletion of that user.
type deadOf map[affinity.Tombstone][]store.LogEvent

// add adds an event of a token with these links if it was deleted so.
func (d deadOf) add(cell *links.Cell, e *store.LogEvent) bool {
	t, dead := cell.DroppedBy(e.Time, e.ReceivedAt())
	if dead {
		d[t] = append(d[t], *e)
	}
	return dead
}

// drop removes the events from the log.
func (d deadOf) drop(ctx context.Context, log store.Log) error {
	for t, events := range d {
		deleted := store.User{DeletedUntil: t.DeletedUntil, ReceivedUntil: t.ReceivedUntil}
		if err := log.DropExcluded(ctx, events, func(string) store.User { return deleted }); err != nil {
			return err
		}
	}
	return nil
}
