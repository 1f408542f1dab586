package profile

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/history"
)

// Delete makes a user forgotten: everything received until now ceases to count
// before it returns, and what is received later begins a new profile. It
// returns the time until which events are deleted; Purge then removes them.
func (e *Engine) Delete(ctx context.Context, appID, user string) (time.Time, error) {
	until := e.now().Truncate(time.Millisecond)
	if err := e.store.AdvanceTombstone(ctx, appID, user, until.UnixMilli()); err != nil {
		return time.Time{}, err
	}
	row, err := e.store.TakeTicket(ctx, appID, user)
	if err != nil {
		return time.Time{}, err
	}
	// Not merely no manifest: a fold that found none before the deletion must not
	// take this for the same.
	none := history.Manifest{Version: version(row.Ticket, reopened)}
	if err := e.store.ForgetUser(ctx, appID, user, row.Ticket, none.AppendBinary(nil)); err != nil {
		return time.Time{}, err
	}
	return until, nil
}

// Purge removes the events of a user from the log that his tombstone covers, up
// to a time, and the blocks that held them. It returns how many events there
// were. Asking for more than was deleted removes no more than was deleted.
func (e *Engine) Purge(ctx context.Context, appID, user string, until time.Time) (int, error) {
	blocks, err := e.store.ListBlocks(ctx, appID, user)
	if err != nil {
		return 0, err
	}
	if err := e.sweep(ctx, appID, map[string][]history.BlockID{user: blocks}); err != nil {
		return 0, err
	}
	row, err := e.store.ReadUser(ctx, appID, user)
	if err != nil {
		return 0, err
	}
	covered := min(until.UnixMilli(), row.DeletedUntil)
	if covered <= 0 {
		return 0, nil
	}
	return e.store.PurgeLog(ctx, appID, user, covered)
}
