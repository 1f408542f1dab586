package profile

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
)

// deletion deletes users.
type deletion struct {
	*env
	orphans *orphans
}

func (d *deletion) delete(ctx context.Context, appID, token string) (time.Time, error) {
	now := d.now().Truncate(time.Millisecond)
	received := now.Add(d.slack)
	t := affinity.Tombstone{DeletedUntil: now.UnixMilli(), ReceivedUntil: received.UnixMilli()}
	if err := d.store.AdvanceTombstone(ctx, appID, token, t); err != nil {
		return time.Time{}, err
	}
	row, err := d.store.TakeTicket(ctx, appID, token)
	if err != nil {
		return time.Time{}, err
	}
	// The manifest is empty but has a version. Without one, a fold that found no
	// manifest before the deletion would find the same now, and commit.
	empty := history.Manifest{Version: version(row.Ticket, uncovered)}
	if err := d.store.ForgetUser(ctx, appID, token, row.Ticket, empty.AppendBinary(nil)); err != nil {
		return time.Time{}, err
	}
	return received, nil
}

func (d *deletion) purge(ctx context.Context, appID, token string, until time.Time) (int, error) {
	blocks, err := d.store.ListBlocks(ctx, appID, token)
	if err != nil {
		return 0, err
	}
	if err := d.orphans.delete(ctx, appID, map[string][]history.BlockID{token: blocks}); err != nil {
		return 0, err
	}
	row, err := d.store.ReadUser(ctx, appID, token)
	if err != nil {
		return 0, err
	}
	covered := row.Tombstone()
	covered.DeletedUntil = min(covered.DeletedUntil, until.UnixMilli())
	covered.ReceivedUntil = min(covered.ReceivedUntil, until.UnixMilli())
	if covered.DeletedUntil <= 0 {
		return 0, nil
	}
	if err := d.store.DropSessions(ctx, appID, token, row.Ticket); err != nil {
		return 0, err
	}
	return d.store.PurgeLog(ctx, appID, token, covered)
}
