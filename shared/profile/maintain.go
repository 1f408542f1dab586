package profile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
)

// tend folds what a bulk computation found outside the blocks, where that is
// least or more. In a nightly round it also takes out of the manifests what is
// spent, and removes blocks that no manifest names. It returns how many
// histories were folded.
func (e *Engine) tend(ctx context.Context, app config.App, works []*work, nightly bool) (int64, error) {
	least := e.limits.foldEvents
	if nightly {
		least = e.limits.maintainEvents
	}
	folded := make([]bool, len(works))
	var g errgroup.Group
	g.SetLimit(maxFolds)
	for i, w := range works {
		switch {
		case w.loose >= least:
			g.Go(func() (err error) {
				folded[i], err = e.Fold(ctx, app, w.user)
				e.untended(ctx, app.ID, w, err)
				return nil
			})
		case nightly && slices.ContainsFunc(w.manifest.Blocks, w.spent):
			g.Go(func() error {
				e.untended(ctx, app.ID, w, e.trim(ctx, app.ID, w))
				return nil
			})
		}
	}
	_ = g.Wait() // nothing is returned: one user's fault does not keep the others back
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("fold histories of %s: %w", app.ID, err)
	}
	var n int64
	for _, f := range folded {
		if f {
			n++
		}
	}
	return n, nil
}

// untended tells that a history stays as it is. No profile is wrong for it.
func (e *Engine) untended(ctx context.Context, appID string, w *work, err error) {
	if err != nil {
		e.counters.FoldFaults.Add(1)
		e.log.LogAttrs(ctx, slog.LevelWarn, "history is not folded", slog.String("app", appID), slog.String("user", w.user), slog.Any("error", err))
	}
}

// trim takes spent blocks out of a user's manifest. It draws a ticket first, as
// every change of a manifest does, so that a fold under way, which still names
// them, does not commit.
func (e *Engine) trim(ctx context.Context, appID string, was *work) error {
	row, err := e.store.TakeTicket(ctx, appID, was.user)
	if err != nil {
		return err
	}
	w := &work{user: was.user, window: was.window}
	if err := e.adopt(ctx, appID, w, row); err != nil {
		return err
	}
	next := w.manifest.Without(w.spent)
	if len(next.Blocks) == len(w.manifest.Blocks) {
		return nil
	}
	if w.manifest.Complete == row.Ticket-1 {
		next.Complete = row.Ticket // this ticket wrote nothing to the log
	}
	next.Version = version(row.Ticket, trimmed)
	_, err = e.store.SwapManifest(ctx, appID, was.user, w.manifest.Version, next.AppendBinary(nil))
	return err
}

// sweep removes blocks that no manifest names and none can name any more: listed
// before their users' rows are read, of a ticket below the newest, and not of a
// fold that has announced itself. A fold that has not, commits on its ticket
// being the newest; one that has, on its announcement being there still.
func (e *Engine) sweep(ctx context.Context, appID string, listed map[string][]history.BlockID) error {
	if len(listed) == 0 {
		return nil
	}
	users := make([]string, 0, len(listed))
	for user := range listed {
		users = append(users, user)
	}
	rows, err := e.store.ReadUsers(ctx, appID, users)
	if err != nil {
		return err
	}
	for user, ids := range listed {
		row := rows[user]
		m, err := history.ParseManifest(row.Manifest)
		if err != nil {
			continue // told when it is read; nothing is removed by it
		}
		ids = slices.DeleteFunc(ids, func(id history.BlockID) bool {
			return id.Ticket >= row.Ticket || m.Announced != nil && m.Announced.Ticket == id.Ticket ||
				slices.ContainsFunc(m.Blocks, func(b history.Block) bool { return b.ID == id })
		})
		if len(ids) == 0 {
			continue
		}
		if err := e.store.DeleteBlocks(ctx, appID, user, ids); err != nil {
			return err
		}
		e.counters.Swept.Add(int64(len(ids)))
	}
	return nil
}
