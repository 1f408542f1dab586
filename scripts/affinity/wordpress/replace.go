package wordpress

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/affinityengine/affinity/shared/api"
)

// replace reads all posts into a file, then clears the index and stores them. So
// the index is never without posts because the site fails in between.
func (r *run) replace(ctx context.Context) (err error) {
	spool, err := beside(r.State)
	if err != nil {
		return fmt.Errorf("make a file for the posts: %w", err)
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	spooled, err := r.spool(ctx, spool)
	if err != nil {
		return fmt.Errorf("read all posts: %w", err)
	}
	if err := r.guardReplace(spooled); err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return r.reload(ctx, spool, len(spooled))
}

// guardReplace refuses to clear an index for far fewer posts.
func (r *run) guardReplace(spooled map[int64]bool) error {
	gone := 0
	for id := range r.state.Posts {
		if !spooled[id] {
			gone++
		}
	}
	if len(spooled) == 0 && !r.AllowMassDeletion {
		return &MassDeletionError{Site: r.Target.Site, Held: len(r.state.Posts), Gone: gone}
	}
	return r.guard(gone, len(spooled))
}

// spool writes all posts that may be in the index to a file, one entry a line. It
// returns their IDs.
func (r *run) spool(ctx context.Context, file io.Writer) (map[int64]bool, error) {
	spooled := map[int64]bool{}
	buffered := bufio.NewWriter(file)
	lines := json.NewEncoder(buffered)
	lines.SetEscapeHTML(false) // a record of the largest size stays one
	done := 0
	params := url.Values{"orderby": {"modified"}, "order": {"asc"}}
	err := r.Site.eachPage(ctx, "wp/v2/posts", params, r.PerPage, func(p page) error {
		posts := r.parse(p.items)
		entries, unfit, err := r.entries(ctx, posts)
		if err != nil {
			return err
		}
		for reason, ids := range unfit {
			for _, id := range ids {
				r.leftOut(reason, id)
			}
		}
		for _, e := range entries {
			spooled[e.ID] = true
			r.state.advance(e.Held.Modified)
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
		done += len(p.items)
		r.Progress("read posts", done, p.total)
		return nil
	})
	return spooled, errors.Join(err, buffered.Flush())
}

// reload clears the index and stores what was spooled.
func (r *run) reload(ctx context.Context, file io.Reader, total int) error {
	r.state.Replacing = true
	if err := r.state.save(); err != nil {
		return err
	}
	if _, err := r.Engine.Batch(ctx, r.Target.Index, api.BatchAction{Action: api.ActionClear}); err != nil {
		return fmt.Errorf("clear the index %s: %w", r.Target.Index, err)
	}
	r.state.Posts, r.state.Replacing = map[int64]*held{}, false
	clear(r.begun)
	if err := r.state.save(); err != nil {
		return err
	}
	lines := json.NewDecoder(file)
	var batch []entry
	for {
		var e entry
		err := lines.Decode(&e)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the spooled posts: %w", err)
		}
		if err == nil {
			batch = append(batch, e)
		}
		if err != nil || len(batch) == batchActions {
			if failed := r.put(ctx, batch); failed != nil {
				return failed
			}
			r.Progress("stored posts", len(r.state.Posts), total)
			if failed := r.state.save(); failed != nil || err != nil {
				return failed
			}
			batch = nil
		}
	}
}
