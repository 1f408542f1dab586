package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// searchShare times the events of a session is the number of events in which a
// reading looks for the session at once. It reads older blocks again if most of
// these events do not score.
const searchShare = 20

// candidate is an event that may belong to a session, as its reader has it: a row
// of the log, or an event of a block.
type candidate struct {
	row   store.LogRow
	event affinity.Event
	block *located // nil for a row
	view  *consent.View
}

// newest finds the events of a user's session in the reading that makes the
// profile. A later reading of its own could hold events that the profile does not
// count, or lack some that it counts.
type newest struct {
	// The engine reads blocks and log at the same time, and so collects from both.
	log, blocks *affinity.Collector[candidate]
	// kept are searched blocks that wait for the log: its events are mostly newer,
	// and often enough for a session.
	kept []keptBlock
	// searched are the blocks of this reading that hold the newest events, and rest
	// are the older ones, newest first.
	searched map[store.BlockName]*located
	rest     []located
}

// located is a block of a reading with the user whose it is, and the blocks of that user that the
// reading has not found yet.
type located struct {
	history.Block
	of      *user
	missing map[history.BlockID]bool
	// intervals are those whose events the reading takes of a block of another token; nil: it takes all.
	intervals []links.Interval
}

func (b *located) name() store.BlockName { return store.BlockName{User: b.of.token, ID: b.ID} }

// locate returns the blocks of a user.
func locate(of *user, missing map[history.BlockID]bool, blocks []history.Block) []located {
	all := make([]located, len(blocks))
	for i := range blocks {
		all[i] = located{Block: blocks[i], of: of, missing: missing}
	}
	return all
}

// keptBlock is a block of a reading with its content.
type keptBlock struct {
	*located
	value []byte
}

// newNewest divides the blocks of a reading for a session.
func newNewest(c *affinity.Compiled, w affinity.Window, blocks []located, l *limits) *newest {
	limit := l.sessionEvents
	n := &newest{
		log: affinity.NewCollector[candidate](c, w, limit), blocks: affinity.NewCollector[candidate](c, w, limit),
		searched: map[store.BlockName]*located{},
	}
	byAge := blocks
	slices.SortStableFunc(byAge, func(a, b located) int { return cmp.Compare(b.Newest, a.Newest) })
	events, oldest := 0, int64(math.MaxInt64) // of those to search
	for i := range byAge {
		b := &byAge[i]
		b.Newest = min(b.Newest, w.Now) // events ahead do not count
		// Blocks of several tokens may hold events of one time. An inline block is read in any case.
		if events >= searchShare*limit && b.Newest < oldest && !b.Inline {
			n.rest = append(n.rest, *b)
			continue
		}
		n.searched[b.name()] = b
		events, oldest = events+b.Events, min(oldest, b.From.Time)
	}
	return n
}

// addRow adds a row of the log.
func (u *computation) addRow(row store.LogRow, view *consent.View, of *store.LogScorer) {
	found := u.newest.log
	if !found.WantsTime(row.Time) {
		return
	}
	if kind := of.Kind(row, u.scorer); found.Wants(row.Time, kind.Type, kind.Name) {
		found.Add(row.Time, row.ID, 0, candidate{row: row, view: view})
	}
}

// searchBlock keeps one of the newest blocks until the log is read. If the reading
// keeps too much already, it adds the block's events at once.
func (r *reading) searchBlock(u *computation, name store.BlockName, value []byte) error {
	b := u.newest.searched[name]
	if b == nil {
		return nil
	}
	if r.blockBytes+len(value) > keepBytes {
		return r.addBlock(u, u.newest.blocks, b, value)
	}
	r.blockBytes += len(value)
	u.newest.kept = append(u.newest.kept, keptBlock{b, slices.Clone(value)})
	return nil
}

// searchKept adds the kept blocks that may hold one of the newest events. It
// restarts the user of a damaged block: scoring skips the section of objects.
func (r *reading) searchKept(ctx context.Context, u *computation) error {
	kept, found := u.newest.kept, u.newest.log
	slices.SortFunc(kept, func(a, b keptBlock) int { return cmp.Compare(b.Newest, a.Newest) })
	for _, b := range kept {
		if u.restart || found.Full() && !found.WantsTime(b.Newest) {
			return nil
		}
		switch err := r.addBlock(u, found, b.located, b.value); {
		case errors.Is(err, history.ErrUnread):
			return err
		case err != nil:
			r.addBadBlock(ctx, r.app.ID, b.of, b.ID, err)
			u.restart = true
		}
	}
	return nil
}

// addBlock adds the events of a block to a collector of the user.
func (r *reading) addBlock(u *computation, to *affinity.Collector[candidate], b *located, value []byte) error {
	ordinal := 0
	add := func(w affinity.Window) error {
		return r.blocks.Recent(value, w, r.limits.sessionEvents, func(ev affinity.Event) {
			id := "" // a block holds no event IDs
			if ev.Time == b.From.Time {
				id = b.From.ID
			}
			ordinal++
			to.Add(ev.Time, id, ordinal, candidate{event: detach(ev), block: b})
		})
	}
	if b.of == u.user && u.partly(b.ID) {
		return r.addViewed(u, to, b, value)
	}
	if b.intervals == nil {
		return add(u.window)
	}
	for _, i := range b.intervals {
		w := u.window
		w.Since, w.Now = max(w.Since, i.Since), min(w.Now, i.To-1)
		if err := add(w); err != nil {
			return err
		}
	}
	return nil
}

// detach returns the event with texts of its own. All events of a block share one
// text, which is as large as the block.
func detach(e affinity.Event) affinity.Event {
	e.Type, e.Name, e.Index = event.Type(strings.Clone(string(e.Type))), strings.Clone(e.Name), strings.Clone(e.Index)
	e.ObjectIDs, e.Counts = slices.Clone(e.ObjectIDs), slices.Clone(e.Counts)
	for i, id := range e.ObjectIDs {
		e.ObjectIDs[i] = strings.Clone(id)
	}
	for i, c := range e.Counts {
		e.Counts[i].Facet, e.Counts[i].Value = strings.Clone(c.Facet), strings.Clone(c.Value)
	}
	return e
}

// sessions completes the sessions of a reading.
func (r *reading) sessions(ctx context.Context, all []*computation) error {
	if r.why < forReading {
		return nil
	}
	for _, u := range all {
		u.newest.log.Merge(u.newest.blocks)
		if err := r.searchKept(ctx, u); err != nil {
			return err
		}
	}
	for _, u := range all {
		if err := r.searchRest(ctx, u); err != nil {
			return err
		}
	}
	decoder := store.NewLogDecoder()
	for _, u := range all {
		found := u.newest.log.Newest()
		u.newest = nil
		events, ids := make([]affinity.Event, len(found)), make([]string, len(found))
		for j, c := range found {
			if c.block == nil {
				ids[j] = c.row.ID
			}
			var err error
			if events[j], err = c.decode(decoder); err != nil && u.fault == nil {
				u.fault = fmt.Errorf("compute session of %s,%s: %w", r.app.ID, u.token, err)
			}
		}
		u.session, u.counted = affinity.NewBase(r.compiled, events, ids, r.limits.sessionEvents)
	}
	return nil
}

func (c candidate) decode(d *store.LogDecoder) (affinity.Event, error) {
	if c.block != nil {
		return c.event, nil
	}
	e, err := d.Event(c.row)
	if c.view != nil {
		e.Counts, _ = c.view.Counts(e, c.row.Receipt())
	}
	return e, err
}

// searchRest reads older blocks again until no block can hold one of the newest
// events.
func (r *reading) searchRest(ctx context.Context, u *computation) error {
	found, rest := u.newest.log, u.newest.rest
	for i := range rest {
		b := &rest[i]
		if u.restart || found.Full() && !found.WantsTime(b.Newest) {
			return nil
		}
		b.missing[b.ID] = true
		name := []store.BlockName{b.name()}
		err := r.store.Histories.ReadBlocks(ctx, r.app.ID, name, func(name store.BlockName, value []byte) error {
			delete(b.missing, name.ID)
			err := r.addBlock(u, found, b, value)
			if err == nil || errors.Is(err, history.ErrUnread) {
				return err
			}
			r.addBadBlock(ctx, r.app.ID, b.of, name.ID, err)
			u.restart = true
			return nil
		})
		if err != nil {
			return err
		}
		u.restart = u.restart || len(b.missing) > 0
	}
	return nil
}
