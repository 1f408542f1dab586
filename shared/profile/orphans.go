package profile

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// orphans deletes blocks that no manifest names.
type orphans struct{ *env }

// delete deletes the orphans among the listed blocks. The caller lists the blocks
// first, and delete reads their users' rows after that.
func (o *orphans) delete(ctx context.Context, appID string, listed map[string][]history.BlockID) error {
	if len(listed) == 0 {
		return nil
	}
	tokens := make([]string, 0, len(listed))
	for token := range listed {
		tokens = append(tokens, token)
	}
	rows, err := o.store.Users.ReadUsers(ctx, appID, tokens)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxTickets)
	for token, ids := range listed {
		g.Go(func() error { return o.deleteOf(ctx, appID, token, rows[token], ids) })
	}
	return g.Wait()
}

// deleteOf deletes the orphans among the blocks of a user.
//
// A fold without an announcement commits while its ticket is the newest, and names
// again the blocks that the manifest named when it drew that ticket. Another process
// may have uncovered one of them since. So while a ticket that is newer than the
// manifest may be that of a fold, deleteOf draws one, after which the fold does not
// commit. A manifest that was changed under the newest ticket has no such fold.
func (o *orphans) deleteOf(ctx context.Context, appID, token string, row store.User, ids []history.BlockID) error {
	m, ids, err := unnamed(row, ids)
	if err != nil || len(ids) == 0 {
		return nil // the next computation reports the error
	}
	if ticketOf(m.Version) != row.Ticket {
		if row, err = o.store.Users.TakeTicket(ctx, appID, token); err != nil {
			return err
		}
		if _, ids, err = unnamed(row, ids); err != nil || len(ids) == 0 {
			return nil
		}
	}
	if err := o.store.Histories.DeleteBlocks(ctx, appID, token, ids); err != nil {
		return err
	}
	o.counters.OrphansDeleted.Add(int64(len(ids)))
	return nil
}

// unnamed returns the manifest of a user row, and those of the blocks that it does not
// name. It leaves out a block of the newest ticket, because a fold without an
// announcement commits while its ticket is the newest, and a block of an announced
// fold, which commits while its announcement is there.
func unnamed(row store.User, ids []history.BlockID) (history.Manifest, []history.BlockID, error) {
	m, err := history.ParseManifest(row.Manifest)
	if err != nil {
		return m, nil, err
	}
	return m, slices.DeleteFunc(slices.Clone(ids), func(id history.BlockID) bool {
		return id.Ticket >= row.Ticket || m.Announced != nil && m.Announced.Ticket == id.Ticket || manifestNames(m, id)
	}), nil
}

// manifestNames reports whether a manifest names a block.
func manifestNames(m history.Manifest, id history.BlockID) bool {
	return slices.ContainsFunc(m.Blocks, func(b history.Block) bool { return b.ID == id && !b.Inline })
}
