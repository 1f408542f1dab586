package wordpress

import (
	"context"
	"fmt"
	"slices"
)

// MassDeletionError is the refusal to remove more than half of an index: a site
// that lists far fewer posts than before is more likely broken than empty.
type MassDeletionError struct {
	Site               string
	Listed, Held, Gone int // Listed: with --full only those that may be in the index
}

// Error says what would be removed, and how to permit it.
func (e *MassDeletionError) Error() string {
	return fmt.Sprintf("%s lists %d posts, and %d of the %d posts in the index are not among them: no such post "+
		"was removed. "+
		"If that is right, run again with --allow-mass-deletion", e.Site, e.Listed, e.Gone, e.Held)
}

// removeGone removes posts that the site does not list, if it does not give them
// by their IDs either: a post that leaves moves others to pages that have been
// read.
func (r *run) removeGone(ctx context.Context, missing []int64) error {
	var gone, closed []int64
	for some := range slices.Chunk(missing, MaxPerPage) {
		items, err := r.Site.include(ctx, some, "id,content.protected")
		if err != nil {
			return fmt.Errorf("confirm that posts are gone: %w", err)
		}
		present := map[int64]stamp{}
		for _, item := range items {
			var one stamp
			if err := unmarshal(item, &one); err != nil {
				return fmt.Errorf("confirm that posts are gone: the site answers %.100s", item)
			}
			present[one.ID] = one
		}
		for _, id := range some {
			switch s, ok := present[id]; {
			case !ok:
				gone = append(gone, id)
			case s.Content.Protected:
				closed = append(closed, id)
			}
		}
	}
	if err := r.leave(ctx, closed, reasonProtected); err != nil {
		return err
	}
	if err := r.guard(len(gone), len(r.listed)); err != nil {
		return err
	}
	return r.leave(ctx, gone, "")
}

// guard refuses to remove more than half of what the index holds.
func (r *run) guard(gone, listed int) error {
	if r.AllowMassDeletion || gone == 0 || 2*gone <= len(r.state.Posts) {
		return nil
	}
	return &MassDeletionError{Site: r.Target.Site, Listed: listed, Held: len(r.state.Posts), Gone: gone}
}
