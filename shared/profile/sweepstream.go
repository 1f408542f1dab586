package profile

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// sweptRows is the number of log rows that a sweep decodes at a time.
	sweptRows = 500
	// sweptBytes is the size of the blocks that a sweep reads at a time, unless one
	// block is larger. Two such batches are in memory.
	sweptBytes = 8 << 20
)

// sweepStream reads the objects of a group of users: the rows outside the blocks as one
// stream, the blocks as another, both in the order of users and of their logs.
// Where the log and a block meet, it takes the next part from the right one.
//
// A block that is missing or damaged, or that does not say the objects of its
// events, is no reason to start again: the log holds its range.
type sweepStream struct {
	*sweeper
	app      config.App
	log      store.Log
	users    []*user
	byUser   map[string]*user
	links    map[string]*links.Cell // of users who have any
	whole    *store.Range           // that holds the users and no others; nil: there may be others
	compiled *affinity.Compiled
	fn       func(user string, e affinity.Event) error

	parts   [][]part // by user
	rows    chan []loose
	waiting []loose // of rows, received and not given to fn
	names   []store.BlockName
	bytes   []int // by block
	blocks  chan map[store.BlockName][]byte
	batch   map[store.BlockName][]byte
	unasked int // blocks of the batch that were not asked for
	reader  history.ObjectReader
	buffer  []affinity.Event

	events, logged int64
	left           leftRows
}

// logLeft logs the first rows that do not decode.
func (sw *sweepStream) logLeft(ctx context.Context) {
	for _, name := range sw.left.all().names {
		sw.env.log.LogAttrs(ctx, slog.LevelError, "a row of the log is left out",
			slog.String("app", sw.app.ID), slog.String("fault", name))
	}
}

// part is a range of a user's log: a block, or a range that no block covers.
type part struct {
	history.Range
	block *history.Block
}

// loose is an event that was read from the log.
type loose struct {
	user string
	at   history.Pos
	affinity.Event
}

// run reads the group and calls fn.
func (sw *sweepStream) run(ctx context.Context) error {
	sw.reader.Dictionaries = sw.dictionaries.Of(ctx, sw.app.ID)
	var ranges []store.UserRange
	for _, u := range sw.users {
		parts := sw.partsOf(u)
		for _, p := range parts {
			if p.block == nil {
				ranges = append(ranges, store.UserRange{User: u.token, From: p.From, To: p.To})
				continue
			}
			if p.block.Inline {
				continue // it came with the row
			}
			sw.names = append(sw.names, store.BlockName{User: u.token, ID: p.block.ID})
			sw.bytes = append(sw.bytes, p.block.Bytes)
		}
		sw.parts = append(sw.parts, parts)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(sw.rows)
		return sw.readLog(ctx, ranges, func(chunk []loose) error {
			select {
			case sw.rows <- chunk:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	g.Go(func() error {
		defer close(sw.blocks)
		return sw.readBlocks(ctx)
	})
	g.Go(func() error { return sw.merge(ctx) })
	return g.Wait()
}

// partsOf returns the parts of a user's log that hold the window, in order.
func (sw *sweepStream) partsOf(u *user) []part {
	blocks, gaps := u.parts()
	if cell := sw.links[u.token]; cell != nil {
		blocks, gaps = spare(cell, blocks, gaps)
	}
	blocks, gaps = u.spareUnclear(blocks, gaps)
	if band, ok := u.band(); ok {
		gaps = append(gaps, history.Range{From: band.From, To: band.To})
	}
	parts, end := make([]part, 0, len(blocks)+len(gaps)), history.End
	if u.window.Now < history.End.Time {
		end = history.Pos{Time: u.window.Now + 1}
	}
	for i := range blocks {
		parts = append(parts, part{blocks[i].Range, &blocks[i]})
	}
	for _, g := range gaps {
		if end.Compare(g.To) < 0 {
			g.To = end
		}
		parts = append(parts, part{Range: g})
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.From.Compare(end) >= 0 })
	slices.SortFunc(parts, func(a, b part) int { return a.From.Compare(b.From) })
	return parts
}

// batchEnd returns the end of the batch of blocks that begins at from.
func (sw *sweepStream) batchEnd(from int) int {
	to, size := from, 0
	for to < len(sw.names) && (to == from || size+sw.bytes[to] <= sweptBytes) {
		size += sw.bytes[to]
		to++
	}
	return to
}

// readBlocks reads the blocks, batch after batch. A block that does not exist is
// not in its batch.
func (sw *sweepStream) readBlocks(ctx context.Context) error {
	for from := 0; from < len(sw.names); {
		to := sw.batchEnd(from)
		batch, err := sw.readBatch(ctx, sw.names[from:to])
		if err != nil {
			return err
		}
		select {
		case sw.blocks <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		from = to
	}
	return nil
}

// readBatch reads a batch of blocks: as one stream if they are those of all users of
// a range.
func (sw *sweepStream) readBatch(ctx context.Context, names []store.BlockName) (map[store.BlockName][]byte, error) {
	batch := make(map[store.BlockName][]byte, len(names))
	if sw.whole == nil || len(names) < len(sw.names) {
		err := sw.store.Histories.ReadBlocks(ctx, sw.app.ID, names, func(name store.BlockName, value []byte) error {
			batch[name] = slices.Clone(value)
			return nil
		})
		return batch, err
	}
	for _, name := range names {
		batch[name] = nil
	}
	err := sw.store.Histories.ScanBlocks(ctx, sw.app.ID, sw.whole.From, sw.whole.To,
		func(name store.BlockName, value []byte) error {
			if _, named := batch[name]; named {
				batch[name] = slices.Clone(value)
			}
			return nil
		})
	return batch, err
}

// readLog reads events of the log in chunks, with their objects.
func (sw *sweepStream) readLog(ctx context.Context, ranges []store.UserRange, fn func([]loose) error) error {
	if len(ranges) == 0 {
		return nil
	}
	var chunk []loose
	err := sw.readRows(ctx, ranges, func(user string, row store.LogRow) error {
		e, ok := sw.decode(user, row)
		if !ok {
			return nil
		}
		if chunk = append(chunk, loose{user, row.Pos, e}); len(chunk) < sweptRows {
			return nil
		}
		whole := chunk
		chunk = nil
		return fn(whole)
	})
	if err != nil || len(chunk) == 0 {
		return err
	}
	return fn(chunk)
}

// readRows reads rows with their filters only if the caller wants counts.
func (sw *sweepStream) readRows(ctx context.Context, ranges []store.UserRange,
	fn func(string, store.LogRow) error) error {
	if sw.reader.Counts {
		return sw.log.ReadWithObjects(ctx, ranges, sw.compiled, fn)
	}
	return sw.log.ReadObjects(ctx, ranges, fn)
}

// decode returns the event of a row. It returns false for one that the user's row excludes
// or that does not decode.
func (sw *sweepStream) decode(user string, row store.LogRow) (affinity.Event, bool) {
	of := sw.byUser[user].row
	cell := sw.links[user]
	if of.Tombstone().Covers(row.Time, row.Receipt()) || cell != nil && cell.Dropped(row.Time, row.Receipt()) {
		return affinity.Event{}, false
	}
	e, err := row.Event()
	if err != nil {
		sw.left.add(user, err)
	}
	if err != nil || of.OptedOut.Has(e.Type) {
		return affinity.Event{}, false
	}
	counts, kept := sw.byUser[user].view.Counts(e, row.Receipt())
	e.Counts = counts
	e.Counts = sw.countsOf(e)
	return e, kept
}

// countsOf returns the counts with which a sweep gives an event of the log.
func (sw *sweepStream) countsOf(e affinity.Event) []affinity.Count {
	if !sw.reader.Counts || len(e.ObjectIDs) > 0 {
		return nil
	}
	return slices.DeleteFunc(e.Counts, func(n affinity.Count) bool {
		_, scored := sw.compiled.Facet([]byte(n.Facet))
		return !scored
	})
}

// merge calls fn for the events of all users.
func (sw *sweepStream) merge(ctx context.Context) error {
	next := 0 // block
	for i, u := range sw.users {
		for _, p := range sw.parts[i] {
			var err error
			switch {
			case p.block == nil:
				err = sw.gap(ctx, u, p.To)
			case p.block.Inline:
				var block []byte
				if block, err = history.ParseInline(*p.block, u.row.Inline); err != nil {
					sw.addBadBlock(ctx, sw.app.ID, u, p.block.ID, err)
				}
				err = sw.giveBlock(ctx, u, p.block, block)
			default:
				err = sw.block(ctx, u, p.block, next)
				next++
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// gap gives the events of a user's log before a position.
func (sw *sweepStream) gap(ctx context.Context, u *user, to history.Pos) error {
	for {
		if len(sw.waiting) == 0 {
			var more bool
			select {
			case sw.waiting, more = <-sw.rows:
			case <-ctx.Done():
				return ctx.Err()
			}
			if !more {
				return nil
			}
		}
		l := &sw.waiting[0]
		if l.user != u.token || l.at.Compare(to) >= 0 {
			return nil
		}
		sw.waiting = sw.waiting[1:]
		if err := sw.give(u, l); err != nil {
			return err
		}
	}
}

// give gives an event of the log.
func (sw *sweepStream) give(u *user, l *loose) error {
	if !u.window.Contains(l.Time) || sw.compiled != nil && sw.compiled.KindScore(l.Type, l.Name) == 0 {
		return nil
	}
	sw.events++
	sw.logged++
	return sw.fn(u.token, l.Event)
}

// block gives the events of a block, the n-th of the group.
func (sw *sweepStream) block(ctx context.Context, u *user, b *history.Block, n int) error {
	if sw.unasked == 0 {
		select {
		case sw.batch = <-sw.blocks:
		case <-ctx.Done():
			return ctx.Err()
		}
		sw.unasked = sw.batchEnd(n) - n
	}
	sw.unasked--
	return sw.giveBlock(ctx, u, b, sw.batch[sw.names[n]])
}

// giveBlock gives the events of a block; an empty one is missing.
func (sw *sweepStream) giveBlock(ctx context.Context, u *user, b *history.Block, value []byte) error {
	ok := len(value) > 0
	if ok {
		sw.buffer = sw.buffer[:0]
		err := sw.reader.Read(value, u.window, func(e affinity.Event) {
			counts, kept := u.view.Counts(e, math.MaxInt64)
			if e.Counts = counts; kept {
				sw.buffer = append(sw.buffer, e)
			}
		})
		if errors.Is(err, history.ErrUnread) {
			return err
		}
		if err != nil {
			sw.addBadBlock(ctx, sw.app.ID, u, b.ID, err)
		}
		ok = err == nil
	}
	if !ok {
		again := store.UserRange{User: u.token, From: b.From, To: b.To}
		if start := u.windowStart(); start.Compare(again.From) > 0 {
			again.From = start
		}
		return sw.readLog(ctx, []store.UserRange{again}, func(chunk []loose) error {
			for i := range chunk {
				if err := sw.give(u, &chunk[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, e := range sw.buffer {
		sw.events++
		if err := sw.fn(u.token, e); err != nil {
			return err
		}
	}
	return nil
}
