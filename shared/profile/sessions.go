package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// searchShare times the events of a session is the number of events in which a
// reading looks for the session at once. It reads older blocks again if most of
// these events do not score.
const searchShare = 20

// maxUnknown bounds the rows that a reading keeps because it needs their originals
// to know their types and names. Only an older version wrote such rows. If a user
// has more, the reading reads these rows again.
const maxUnknown = 1024

// candidate is an event that may belong to a session, as its reader has it: a row
// of the log, or an event of a block.
type candidate struct {
	row   store.LogRow
	event affinity.Event
	block *history.Block // nil for a row
	// again means that the row is of another reading than the scores: the profile
	// may not count it.
	again bool
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
	// unnamed are the parts of blocks to read from the log, because the blocks do not
	// name objects.
	unnamed []store.UserRange
	// unknown are the newest rows whose types and names only their originals tell.
	unknown *affinity.Collector[candidate]
	// parts are the parts of blocks that the reading has read from the log.
	parts []store.UserRange
	// searched are the blocks of this reading that hold the newest events, and rest
	// are the older ones, newest first.
	searched map[history.BlockID]*history.Block
	rest     []history.Block
}

// keptBlock is a block of a reading with its content.
type keptBlock struct {
	*history.Block
	value []byte
}

// newNewest divides the blocks of a reading for a session.
func newNewest(c *affinity.Compiled, w affinity.Window, blocks []history.Block, l *limits) *newest {
	limit := l.sessionEvents
	n := &newest{
		log: affinity.NewCollector[candidate](c, w, limit), blocks: affinity.NewCollector[candidate](c, w, limit),
		unknown: affinity.NewCollector[candidate](c, w, l.sessionUnknown), searched: map[history.BlockID]*history.Block{},
	}
	byAge := slices.SortedFunc(slices.Values(blocks), func(a, b history.Block) int {
		return cmp.Compare(b.Newest, a.Newest)
	})
	events := 0
	for i := range byAge {
		byAge[i].Newest = min(byAge[i].Newest, w.Now)        // events ahead do not count
		if events >= searchShare*limit && !byAge[i].Inline { // that one is read in any case
			n.rest = append(n.rest, byAge[i])
			continue
		}
		n.searched[byAge[i].ID] = &byAge[i]
		events += byAge[i].Events
	}
	return n
}

// addRow adds a row of the log. again says that it is read apart from the scores.
func (u *computation) addRow(row store.LogRow, of *store.LogScorer, again bool) {
	n := u.newest
	if !n.log.WantsTime(row.Time) {
		return
	}
	if kind, ok := of.Kind(row, u.scorer); !ok {
		n.unknown.Add(row.Time, row.ID, 0, candidate{row: row, again: again})
	} else if n.log.Wants(row.Time, kind.Type, kind.Name) {
		n.log.Add(row.Time, row.ID, 0, candidate{row: row, again: again})
	}
}

// searchBlock keeps one of the newest blocks until the log is read. If the reading
// keeps too much already, it adds the block's events at once.
func (r *reading) searchBlock(u *computation, id history.BlockID, value []byte) error {
	b := u.newest.searched[id]
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
		switch err := r.addBlock(u, found, b.Block, b.value); {
		case errors.Is(err, history.ErrUnread):
			return err
		case err != nil:
			r.addBadBlock(ctx, r.app.ID, u.user, b.ID, err)
			u.restart = true
		}
	}
	return nil
}

// addBlock adds the events of a block to a collector of the user. A block of an
// earlier version does not name objects, and not always the types of events. Then
// the reading reads its newest part from the log: unnamed.
func (r *reading) addBlock(u *computation, to *affinity.Collector[candidate], b *history.Block, value []byte) error {
	ordinal, limit := 0, r.limits.sessionEvents
	named, err := r.blocks.Recent(value, u.window, limit, func(ev affinity.Event) {
		id := "" // a block holds no event IDs
		if ev.Time == b.From.Time {
			id = b.From.ID
		}
		ordinal++
		to.Add(ev.Time, id, ordinal, candidate{event: detach(ev), block: b})
	})
	if named || err != nil {
		return err
	}
	var times []int64
	for ev, err := range history.Events(value, r.dictionaries) {
		if err != nil {
			return err
		}
		if to.Wants(ev.Time, string(ev.Type), ev.Name) {
			times = append(times, ev.Time)
		}
	}
	part := store.UserRange{User: u.token, From: b.From, To: b.To}
	if n := len(times); n >= limit && times[n-limit] > b.From.Time {
		part.From = history.Pos{Time: times[n-limit]}
	}
	if from := u.windowStart(); part.From.Compare(from) < 0 {
		part.From = from
	}
	u.newest.unnamed = append(u.newest.unnamed, part)
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

// readUnnamed reads, from the log, the newest parts of blocks that do not name
// objects.
func (r *reading) readUnnamed(ctx context.Context, users ...*computation) error {
	var parts []store.UserRange
	for _, u := range users {
		parts = append(parts, u.newest.unnamed...)
		u.newest.parts = append(u.newest.parts, u.newest.unnamed...)
		u.newest.unnamed = nil
	}
	if len(parts) == 0 {
		return nil
	}
	scorer := store.NewLogScorer(r.compiled)
	return r.logs.of(r.app).ReadWithObjects(ctx, parts, r.compiled, func(token string, row store.LogRow) error {
		r.byUser[token].addRow(row, scorer, true)
		return nil
	})
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
	if err := r.readUnnamed(ctx, all...); err != nil {
		return err
	}
	for _, u := range all {
		if err := r.searchRest(ctx, u); err != nil {
			return err
		}
	}
	if err := r.completeKinds(ctx, all); err != nil {
		return err
	}
	found := make([][]candidate, len(all))
	var rows []*store.LogRow
	for i, u := range all {
		found[i] = u.newest.log.Newest()
		rows = append(rows, rowsOf(found[i])...)
	}
	if err := r.logs.of(r.app).CompleteObjects(ctx, rows); err != nil {
		return err
	}
	decoder := store.NewLogDecoder()
	for i, u := range all {
		u.newest = nil
		events, ids := make([]affinity.Event, len(found[i])), make([]string, len(found[i]))
		for j, c := range found[i] {
			if c.block == nil && !c.again {
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
	return d.Event(c.row)
}

// rowsOf returns the candidates that are rows of the log.
func rowsOf(all []candidate) []*store.LogRow {
	var rows []*store.LogRow
	for i := range all {
		if all[i].block == nil {
			rows = append(rows, &all[i].row)
		}
	}
	return rows
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
		u.missing[b.ID] = true
		name := []store.BlockName{{User: u.token, ID: b.ID}}
		err := r.store.ReadBlocks(ctx, r.app.ID, name, func(name store.BlockName, value []byte) error {
			delete(u.missing, name.ID)
			err := r.addBlock(u, found, b, value)
			if err == nil || errors.Is(err, history.ErrUnread) {
				return err
			}
			r.addBadBlock(ctx, r.app.ID, u.user, name.ID, err)
			u.restart = true
			return nil
		})
		if err != nil {
			return err
		}
		u.restart = u.restart || len(u.missing) > 0
		if err := r.readUnnamed(ctx, u); err != nil {
			return err
		}
	}
	return nil
}
