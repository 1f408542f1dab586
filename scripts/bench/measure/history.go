package measure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// historyTables hold every user's row and blocks as the engine's folds leave them. The
// log holds only the events outside the blocks: the engine does not read the others.
var historyTables = tables{[]string{History}, loadHistories,
	func(_ string, c *client, d *dataset, tail int) reader { return newHistoryReader(c, d, tail) }}

const (
	// loaders is how many writers load histories: each mostly waits for the server.
	loaders = 16
	// loadEvents is the number of events whose rows of the log exist at a time, and
	// loadBatch how many the engine imports at once.
	loadEvents, loadBatch = 400_000, 500
)

// loadHistories imports the events of all users and folds them with the engine, except
// the newest of each user, of which there are tail.
func loadHistories(ctx context.Context, c *client, d *dataset, tail int) error {
	l := historyLoader{newHistoryReader(c, d, 0)}
	each := max(1, d.total()/d.users)
	step := max(1, loadEvents/each)
	for from := 0; from < d.users; from += step {
		if err := l.fold(ctx, span{from, min(from+step, d.users)}, tail); err != nil {
			return err
		}
	}
	if tail == 0 {
		return nil
	}
	return l.load(ctx, span{0, d.users}, func(events []store.LogEvent) []store.LogEvent { return newest(events, tail) })
}

// newest returns the last events of a user.
func newest(events []store.LogEvent, n int) []store.LogEvent { return events[max(0, len(events)-n):] }

type historyLoader struct{ *historyReader }

// fold imports all but the newest events of some users, folds them as the job after an
// import does, and deletes their rows of the log.
func (l historyLoader) fold(ctx context.Context, users span, tail int) error {
	err := l.load(ctx, users, func(events []store.LogEvent) []store.LogEvent { return events[:max(0, len(events)-tail)] })
	if err != nil {
		return err
	}
	if users.from == 0 { // as the job does before it folds
		l.engine.RenewDictionary(ctx, l.app, nil)
	}
	did, err := l.engine.Recompute(ctx, l.app, store.Range{From: l.d.user(users.from), To: l.d.user(users.to)},
		profile.RecomputeOptions{Fold: true}, func(profile.Progress) error { return nil })
	if err == nil && !did.Done {
		err = errors.New("the recompute ended before its part did")
	}
	if err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	if err := l.c.admin.DropAllRows(ctx, store.TableEvents); err != nil {
		return fmt.Errorf("empty table %s: %w", store.TableEvents, err)
	}
	return nil
}

// load imports the chosen events of some users.
func (l historyLoader) load(ctx context.Context, users span, choose func([]store.LogEvent) []store.LogEvent) error {
	each := max(1, loadBatch*l.d.users/l.d.total())
	return share(ctx, loaders, users.to-users.from, each, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			var events []store.LogEvent
			for i := users.from + sp.from; i < users.from+sp.to; i++ {
				events = append(events, choose(l.d.rows(i))...)
			}
			for some := range slices.Chunk(events, loadBatch) {
				if _, err := l.engine.Import(ctx, l.app, some); err != nil {
					return fmt.Errorf("import: %w", err)
				}
			}
			return nil
		}
	})
}

// benchApp is the app of all measurements.
func benchApp(d *dataset) config.App {
	return config.App{ID: appID, RetentionDays: d.window.RetentionDays, Strategy: d.strategy, Log: schema.Default()}
}

// unchanging is a configuration of one app that never changes.
type unchanging struct {
	*config.Store
	app config.App
}

func still(app config.App) config.Source { return unchanging{app: app} }

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
	now := func() time.Time { return time.UnixMilli(d.window.Now) }
	r := &historyReader{
		c: c, d: d, app: app, compiled: affinity.Compile(d.strategy),
		engine: profile.New(c.whole, still(app), config.NewCached(still(app), time.Hour), now, slog.New(slog.DiscardHandler)),
	}
	for i := 0; tail > 0 && i < d.users; i++ {
		first := newest(d.rows(i), tail)[0]
		r.tails = append(r.tails, store.UserRange{User: first.User, From: history.Pos{Time: first.Time, ID: first.ID},
			To: history.End})
	}
	return r
}

// floor receives user rows, blocks, and the events outside the blocks.
func (r *historyReader) floor(ctx context.Context) error {
	table := r.c.raw.Open(store.TableHistories)
	return eachShard(ctx, r.d.users, historyShard, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			from, to := r.d.user(sp.from), r.d.user(sp.to)
			err := r.c.store.Users.ScanUsers(ctx, appID, from, to, 0, store.UserHistory,
				func(string, store.User) error { return nil })
			if err != nil {
				return err
			}
			if len(r.tails) > 0 {
				err := r.c.whole.Events.Log(appID, schema.Default()).ReadFor(ctx, r.tails[sp.from:sp.to], r.compiled,
					func(string, store.LogRow) error { return nil })
				if err != nil {
					return err
				}
			}
			blocks := bigtable.NewRange(appID+","+from+",", appID+","+to+",")
			return table.ReadRows(ctx, blocks, func(bigtable.Row) bool { return true })
		}
	})
}

// recompute gives each worker a part of the users, like shards of a job that are
// processed at the same time.
func (r *historyReader) recompute(ctx context.Context, t *target) error {
	each := (r.d.users + workers() - 1) / workers()
	return eachShard(ctx, r.d.users, each, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			return r.recomputeShard(ctx, store.Range{From: r.d.user(sp.from), To: r.d.user(sp.to)}, t)
		}
	})
}

// recomputeShard is one call of the engine.
func (r *historyReader) recomputeShard(ctx context.Context, users store.Range, t *target) error {
	app := r.app
	app.StrategyVersion, app.ScoringVersion = t.version, t.version
	did, err := r.engine.Recompute(ctx, app, users, profile.RecomputeOptions{Discard: !t.writes},
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
