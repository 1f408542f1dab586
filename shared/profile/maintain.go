package profile

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/history"
)

// maintain folds the users of a recompute who have many unfolded events. In the
// nightly round it also folds users with fewer, and removes spent blocks from
// manifests. A recompute that is to fold takes users with one event. It returns the
// number of folded histories.
func (f *folder) maintain(ctx context.Context, app config.App, users []*bulkUser, o RecomputeOptions) (int64, error) {
	minEvents := f.limits.foldEvents
	switch {
	case o.Fold:
		minEvents = 1
		f = &folder{f.env, f.logs, f.tickets, true}
	case o.Maintain:
		minEvents = f.limits.maintainEvents
	}
	folded := make([]bool, len(users))
	var g errgroup.Group
	g.SetLimit(maxFolds)
	for i, u := range users {
		switch {
		case u.fault != nil:
		case u.packed != nil:
			g.Go(func() (err error) {
				folded[i], err = f.commitPacked(ctx, app, u)
				f.logFailure(ctx, app.ID, u.token, err)
				return nil
			})
		case o.folds() && f.isSmall(u):
			g.Go(func() (err error) {
				folded[i], err = f.foldSmall(ctx, app, u.token)
				f.logFailure(ctx, app.ID, u.token, err)
				return nil
			})
		case u.unfolded >= minEvents:
			g.Go(func() (err error) {
				folded[i], err = f.fold(ctx, app, u.token)
				f.logFailure(ctx, app.ID, u.token, err)
				return nil
			})
		case o.Maintain && slices.ContainsFunc(u.manifest.Blocks, func(b history.Block) bool { return u.spent(b) }):
			g.Go(func() error {
				f.logFailure(ctx, app.ID, u.token, f.trim(ctx, app.ID, &u.user))
				return nil
			})
		}
	}
	_ = g.Wait() // it returns no error: a failed fold must not stop the others
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("fold histories of %s: %w", app.ID, err)
	}
	var n int64
	for _, done := range folded {
		if done {
			n++
		}
	}
	return n, nil
}

// trim removes spent blocks from a user's manifest. Like every change of a
// manifest it draws a ticket first, so that a concurrent fold, which still names
// those blocks, does not commit.
func (f *folder) trim(ctx context.Context, appID string, stale *user) error {
	row, err := f.store.Users.TakeTicket(ctx, appID, stale.token)
	if err != nil {
		return err
	}
	u := &user{token: stale.token, window: stale.window}
	if err := f.setRow(ctx, appID, u, row); err != nil {
		return err
	}
	next := u.manifest.Without(u.spent)
	if u.manifest.Complete == row.Ticket-1 {
		next.Complete = row.Ticket // the holder of this ticket wrote no event
	}
	if len(next.Blocks) == len(u.manifest.Blocks) {
		return nil
	}
	next.Version = version(row.Ticket, trimmed)
	_, err = f.swap(ctx, appID, u.token, u.manifest, next, nil)
	return err
}

// swapManifest sets a user's manifest if it has a version. It also reports true if an
// earlier attempt has set it, and its answer was lost: no two manifests have the same
// version.
func (f *folder) swapManifest(ctx context.Context, appID, token string, from, next history.Manifest,
	cell []byte) (bool, error) {
	ok, err := f.swap(ctx, appID, token, from, next, cell)
	if ok || err != nil {
		return ok, err
	}
	row, err := f.store.Users.ReadUser(ctx, appID, token)
	if err != nil {
		return false, err
	}
	m, err := history.ParseManifest(row.Manifest)
	return err == nil && m.Version == next.Version, nil
}
