package profile

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// A recompute that is to fold reads the log of a user without history once, as a refresh that
// folds does: it draws a ticket, reads, writes the profile at the ticket, and commits the
// blocks while the ticket is the newest. So an import of new users costs one reading of their
// log and two requests for each of them.

// isNew reports whether a user has no history, and nobody is making one.
func (run *bulkRun) isNew(u *bulkUser) bool {
	return u.fault == nil && u.stale && u.row.Ticket > 0 && !u.damaged && len(u.manifest.Blocks) == 0 &&
		u.manifest.Announced == nil && !u.sifted() && !run.linked(u.row) && !run.unsettled(u.row)
}

// drawNew draws tickets for the new users of a group. Their rows are then those of the tickets.
func (run *bulkRun) drawNew(ctx context.Context, gr *group) error {
	if !run.options.Fold || run.options.Discard {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxTickets)
	for _, u := range gr.users {
		if !run.isNew(u) {
			continue
		}
		g.Go(func() error {
			row, err := run.tickets.taker(run.app)(ctx, run.app.ID, u.token)
			if err == nil {
				run.setRowOf(ctx, run.app.ID, &u.user, row)
				run.setReading(&u.user, u.window.Clock, u.window.Clock, run.app)
				u.packs = run.isNew(u)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, u := range gr.users {
		if u.stale && u.row.Gone() {
			u.stale, gr.stale = false, gr.stale-1
		}
	}
	return nil
}

// packed are the blocks of a user that wait for their commit.
type packed struct {
	next history.Manifest
	cell []byte // of the inline block, if next names one
}

// pack adds an event that was read for its score to the blocks of a new user. No profile
// depends on them, so it only logs an error.
func (o *output) pack(ctx context.Context, u *bulkUser, row store.LogRow) {
	if u.packer == nil {
		if o.builder == nil {
			o.builder, o.decoder = o.newBuilder(ctx, o.app.ID), store.NewLogDecoder()
		}
		u.packer = o.folder.newPacker(o.app, &u.user, u.trimmed(), 0, nil, o.builder, o.decoder)
	}
	if err := u.packer.add(ctx, row); err != nil {
		o.folder.logFailure(ctx, o.app.ID, u.token, err)
		o.unpack(u)
	}
}

// unpack gives up the blocks of a user.
func (o *output) unpack(u *bulkUser) {
	if u.packer != nil {
		o.builder.Reset()
	}
	u.packs, u.packer = false, nil
}

// packedAll ends the blocks of a user whose log has been read.
func (o *output) packedAll(ctx context.Context, u *bulkUser) {
	p := u.packer
	if p == nil {
		return
	}
	next, cell, err := p.finish(ctx, history.End)
	if err != nil {
		o.folder.logFailure(ctx, o.app.ID, u.token, err)
	} else if len(p.blocks) > 0 {
		next.Complete, next.Version = u.row.Ticket, version(u.row.Ticket, committed)
		u.packed = &packed{owned(next, cell), cell}
	}
	o.unpack(u)
}

// commitPacked names the blocks of a new user in the manifest, if nobody has drawn a ticket
// since they were read. Otherwise it folds a user with many events again, with an announcement,
// and leaves others to the next round.
func (f *folder) commitPacked(ctx context.Context, app config.App, u *bulkUser) (bool, error) {
	if err := f.logs.check(ctx, app); err != nil {
		return false, err
	}
	done, err := f.commit(ctx, app.ID, &u.user, u.packed.next, u.packed.cell)
	f.countFold(done, err)
	if done || err != nil || u.unfolded < announceRatio*f.limits.foldEvents {
		return done, err
	}
	return f.fold(ctx, app, u.token)
}
