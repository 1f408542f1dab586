package profile

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/history"
)

// orphans deletes blocks that no manifest names.
type orphans struct{ *env }

// delete deletes the orphans among the listed blocks. The caller lists the blocks
// first, and delete reads their users' rows after that. It keeps a block of the
// newest ticket, because a fold without an announcement commits while its ticket is
// the newest. It keeps a block of an announced fold, because that fold commits
// while its announcement is there.
func (o *orphans) delete(ctx context.Context, appID string, listed map[string][]history.BlockID) error {
	if len(listed) == 0 {
		return nil
	}
	tokens := make([]string, 0, len(listed))
	for token := range listed {
		tokens = append(tokens, token)
	}
	rows, err := o.store.ReadUsers(ctx, appID, tokens)
	if err != nil {
		return err
	}
	for token, ids := range listed {
		row := rows[token]
		m, err := history.ParseManifest(row.Manifest)
		if err != nil {
			continue // the next computation reports it
		}
		ids = slices.DeleteFunc(ids, func(id history.BlockID) bool {
			return id.Ticket >= row.Ticket || m.Announced != nil && m.Announced.Ticket == id.Ticket || manifestNames(m, id)
		})
		if len(ids) == 0 {
			continue
		}
		if err := o.store.DeleteBlocks(ctx, appID, token, ids); err != nil {
			return err
		}
		o.counters.OrphansDeleted.Add(int64(len(ids)))
	}
	return nil
}

// manifestNames reports whether a manifest names a block.
func manifestNames(m history.Manifest, id history.BlockID) bool {
	return slices.ContainsFunc(m.Blocks, func(b history.Block) bool { return b.ID == id })
}
