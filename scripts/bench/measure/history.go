package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// historyTables hold the result of folds: every user's row with a manifest, and
// the blocks. The log holds only the events outside the blocks: the engine does
// not read the others.
var historyTables = tables{[]string{History}, loadHistories,
	func(_ string, c *client, d *dataset, tail int) reader { return newHistoryReader(c, d, tail) }}

// loaders is how many writers load histories: each mostly waits for the server.
const loaders = 16

func loadHistories(ctx context.Context, c *client, d *dataset, tail int) error {
	return share(ctx, loaders, d.users, 1, func() func(context.Context, span) error {
		f := folder{c: c, builder: history.NewBuilder(), tail: tail}
		var events []entry
		return func(ctx context.Context, sp span) error {
			events = d.events(sp.from, events)
			return f.fold(ctx, d.user(sp.from), events)
		}
	})
}

// folder writes the histories of users.
type folder struct {
	c       *client
	builder *history.Builder
	tail    int // newest events that stay outside the blocks
	blocks  []history.Block
	writes  []store.BlockWrite
}

// fold writes a user's events as a fold of all but the newest leaves them.
func (f *folder) fold(ctx context.Context, user string, events []entry) error {
	row, err := f.c.store.TakeTicket(ctx, appID, user)
	if err != nil {
		return err
	}
	f.blocks, f.writes = f.blocks[:0], f.writes[:0]
	folded := events[:len(events)-f.tail]
	from := history.Pos{Time: window.From()}
	for i := range folded {
		if f.builder.Add(folded[i].Event) {
			continue
		}
		to := history.Pos{Time: folded[i].Time, ID: folded[i].ID}
		f.block(row.Ticket, history.Range{From: from, To: to})
		if from = to; !f.builder.Add(folded[i].Event) {
			return fmt.Errorf("fold %s: event %s fits no block", user, folded[i].ID)
		}
	}
	var m history.Manifest
	if len(folded) > 0 {
		last := folded[len(folded)-1]
		f.block(row.Ticket, history.Range{From: from, To: history.Pos{Time: last.Time, ID: last.ID}.Next()})
		m = m.With(f.blocks...)
	}
	if m.Version = row.Ticket; f.tail == 0 {
		m.Complete = row.Ticket
	}
	if err := f.c.store.WriteBlocks(ctx, appID, user, f.writes); err != nil {
		return err
	}
	if err := f.c.store.Log(appID, schema.Default()).Append(ctx, logEvents(user, events[len(folded):])); err != nil {
		return err
	}
	done, err := f.c.store.CommitFold(ctx, appID, user, row.Ticket, m.AppendBinary(nil))
	if err == nil && !done {
		err = fmt.Errorf("fold %s: ticket %d is not the newest", user, row.Ticket)
	}
	return err
}

// block completes the current block.
func (f *folder) block(ticket int64, r history.Range) {
	b := history.Block{Range: r, ID: history.BlockID{Ticket: ticket, N: len(f.blocks)}, Newest: f.builder.Newest(), Events: f.builder.Len()}
	value := f.builder.AppendBlock(nil)
	b.Bytes = len(value)
	f.blocks = append(f.blocks, b)
	f.writes = append(f.writes, store.BlockWrite{ID: b.ID, Newest: b.Newest, Value: value})
}

// benchApp is the app of all measurements.
func benchApp(d *dataset) config.App {
	return config.App{ID: appID, RetentionDays: windowDays, Strategy: d.strategy, Log: schema.Default()}
}

// unchanging is a configuration of one app that never changes.
type unchanging struct {
	config.Store
	app config.App
}

func still(app config.App) config.Store { return unchanging{app: app} }

func (u unchanging) App(context.Context, string) (config.App, error) { return u.app, nil }

// historyReader recomputes with the engine itself. It receives whole rows of
// events outside the blocks: filtering a few rows takes the in-process server
// longer than everything else.
type historyReader struct {
	c        *client
	d        *dataset
	app      config.App
	compiled *affinity.Compiled
	engine   *profile.Engine
	tails    []store.UserRange // by user: the range outside the blocks
}

func newHistoryReader(c *client, d *dataset, tail int) *historyReader {
	app := benchApp(d)
	now := func() time.Time { return instant }
	r := &historyReader{
		c: c, d: d, app: app, compiled: affinity.Compile(d.strategy),
		engine: profile.New(c.whole, still(app), config.NewCached(still(app), time.Hour), now, slog.New(slog.DiscardHandler)),
	}
	for i := 0; tail > 0 && i < d.users; i++ {
		first := d.events(i, nil)[d.shape.events-tail]
		r.tails = append(r.tails, store.UserRange{User: d.user(i), From: history.Pos{Time: first.Time, ID: first.ID}, To: history.End})
	}
	return r
}

// floor receives user rows, blocks, and the events outside the blocks.
func (r *historyReader) floor(ctx context.Context) error {
	table := r.c.raw.Open(store.TableHistories)
	return eachShard(ctx, r.d.users, historyShard, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			from, to := r.d.user(sp.from), r.d.user(sp.to)
			err := r.c.store.ScanUsers(ctx, appID, from, to, 0, store.UserState, func(string, store.User) error { return nil })
			if err != nil {
				return err
			}
			if len(r.tails) > 0 {
				err := r.c.whole.Log(appID, schema.Default()).ReadFor(ctx, r.tails[sp.from:sp.to], r.compiled, func(string, store.LogRow) error { return nil })
				if err != nil {
					return err
				}
			}
			blocks := bigtable.NewRange(appID+","+from+",", appID+","+to+",")
			return table.ReadRows(ctx, blocks, func(bigtable.Row) bool { return true })
		}
	})
}

// recompute is one call for all users, like one shard of a recompute.
func (r *historyReader) recompute(ctx context.Context, t *target) error {
	app := r.app
	app.StrategyVersion, app.ScoringVersion = t.version, t.version
	did, err := r.engine.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{Discard: !t.writes},
		func(profile.Progress) error { return nil })
	switch {
	case err != nil:
		return err
	case !did.Done:
		return errors.New("the recompute ended before its part did")
	case did.Users != did.Known:
		return fmt.Errorf("%d of %d users are known", did.Known, did.Users)
	case t.writes && did.Written != did.Known:
		return fmt.Errorf("%d of %d profiles were written", did.Written, did.Known)
	}
	t.add(totals{users: did.Known, events: did.Events})
	return nil
}
