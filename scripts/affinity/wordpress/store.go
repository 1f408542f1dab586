package wordpress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// gmtLayout is how WordPress writes an instant: in UTC, without a zone.
const gmtLayout = "2006-01-02T15:04:05"

// How much one batch carries at most.
const (
	batchActions = min(1000, api.MaxActions)
	batchBytes   = min(4_000_000, api.MaxCatalogBody)
)

// entry is a post on its way into the index.
type entry struct {
	ID     int64           `json:"id"`
	Held   *held           `json:"held"`
	Record json.RawMessage `json:"record"`
}

// store puts posts into the index that differ from what it holds, and removes
// those that may not be in it any more.
func (r *run) store(ctx context.Context, posts []*post) error {
	entries, unfit, err := r.entries(ctx, posts)
	if err != nil {
		return err
	}
	for reason, ids := range unfit {
		if err := r.leave(ctx, ids, reason); err != nil {
			return err
		}
	}
	var different []entry
	for _, e := range entries {
		if h := r.state.Posts[e.ID]; h != nil && h.Record == e.Held.Record {
			r.state.Posts[e.ID] = e.Held // it may have been modified all the same
			continue
		}
		different = append(different, e)
	}
	return r.put(ctx, different)
}

// entries are the posts that may be in the index, and the IDs of the others by
// reason.
func (r *run) entries(ctx context.Context, posts []*post) (entries []entry, unfit map[string][]int64, err error) {
	if err := r.names.learnAll(ctx, posts); err != nil {
		return nil, nil, fmt.Errorf("read the names of terms and authors: %w", err)
	}
	unfit = map[string][]int64{}
	for _, p := range posts {
		reason := p.unfit()
		if reason == "" {
			e, err := r.entry(p)
			if err != nil {
				return nil, nil, err
			}
			if e.Record != nil {
				entries = append(entries, e)
				continue
			}
			reason = reasonTooLarge
		}
		unfit[reason] = append(unfit[reason], p.ID)
	}
	return entries, unfit, nil
}

func (r *run) entry(p *post) (entry, error) {
	h := &held{
		Modified: p.Modified, Categories: p.Categories, Tags: p.Tags, Author: p.Author,
		Terms: r.names.terms(p.Categories, p.Tags), AuthorName: r.authorName(r.state.Posts[p.ID], p.Author),
	}
	record, whole, err := p.record(r.names, h.AuthorName)
	if err != nil || record == nil {
		return entry{}, err
	}
	if !whole && !slices.Contains(r.sum.WithoutWordPress, p.ID) {
		r.sum.WithoutWordPress = append(r.sum.WithoutWordPress, p.ID)
	}
	h.Record = digest(record)
	return entry{ID: p.ID, Held: h, Record: record}, nil
}

// authorName is what an author is called. If the site hides its authors now, a
// post keeps the name that it has.
func (r *run) authorName(h *held, author int64) string {
	if r.names.authorless == nil {
		return r.names.author(author)
	}
	if h != nil && h.Author == author {
		return h.AuthorName
	}
	return ""
}

// put stores entries. The state has their IDs before the engine has them: a post
// that is stored just before the process dies, and then deleted upstream, is still
// removed.
func (r *run) put(ctx context.Context, entries []entry) error {
	unknown := false
	for _, e := range entries {
		if r.state.Posts[e.ID] == nil {
			r.state.Posts[e.ID], unknown = &held{}, true
		}
	}
	if unknown {
		if err := r.state.save(); err != nil {
			return err
		}
	}
	for batch := range batches(entries) {
		if err := r.send(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// batches cuts entries into batches that the engine takes.
func batches(entries []entry) func(yield func([]entry) bool) {
	return func(yield func([]entry) bool) {
		begin, size := 0, 0
		for i, e := range entries {
			if i > begin && (i-begin == batchActions || size+len(e.Record) > batchBytes) {
				if !yield(entries[begin:i]) {
					return
				}
				begin, size = i, 0
			}
			size += len(e.Record)
		}
		if begin < len(entries) {
			yield(entries[begin:])
		}
	}
}

// send stores a batch. If the engine refuses it, each half is sent, so that the
// bad posts are found and the others are stored.
func (r *run) send(ctx context.Context, batch []entry) error {
	actions := make([]api.BatchAction, len(batch))
	for i, e := range batch {
		actions[i] = api.BatchAction{Action: api.ActionUpdateObject, Body: e.Record}
	}
	_, err := r.Engine.Batch(ctx, r.Target.Index, actions...)
	if refused := refusal(err); refused != nil {
		switch refused.Status {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			if len(batch) == 1 {
				r.Warn(fmt.Sprintf("post %d: %v", batch[0].ID, refused))
				r.sum.Refused = true
				return r.leave(ctx, []int64{batch[0].ID}, reasonRefused)
			}
			middle := len(batch) / 2
			if err := r.send(ctx, batch[:middle]); err != nil {
				return err
			}
			return r.send(ctx, batch[middle:])
		}
	}
	if err != nil {
		return fmt.Errorf("store %d posts in index %s: %w", len(batch), r.Target.Index, err)
	}
	for _, e := range batch {
		r.state.Posts[e.ID] = e.Held
		if r.outcome[e.ID] != added {
			r.outcome[e.ID] = changed
			if !r.begun[e.ID] {
				r.outcome[e.ID] = added
			}
		}
	}
	return nil
}

// leave removes posts from the index, if it may hold them. A reason counts them as
// left out.
func (r *run) leave(ctx context.Context, ids []int64, reason string) error {
	var held []int64
	for _, id := range ids {
		if reason != "" {
			r.leftOut(reason, id)
		}
		if r.state.Posts[id] != nil {
			held = append(held, id)
		}
	}
	if len(held) == 0 {
		return nil
	}
	for some := range slices.Chunk(held, batchActions) {
		actions := make([]api.BatchAction, len(some))
		for i, id := range some {
			actions[i] = api.BatchAction{Action: api.ActionDeleteObject, ObjectID: strconv.FormatInt(id, 10)}
		}
		if _, err := r.Engine.Batch(ctx, r.Target.Index, actions...); err != nil {
			return fmt.Errorf("remove %d posts from index %s: %w", len(some), r.Target.Index, err)
		}
		for _, id := range some {
			delete(r.state.Posts, id)
			delete(r.outcome, id)
			if r.begun[id] {
				r.outcome[id] = removed
			}
		}
	}
	return r.state.save()
}

// refusal is the engine's refusal behind err, nil if it did not refuse.
func refusal(err error) *api.Error {
	var refused *api.Error
	if errors.As(err, &refused) {
		return refused
	}
	return nil
}
