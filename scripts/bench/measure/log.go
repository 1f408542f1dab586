package measure

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// logTables are the engine's log in a layout. For the first reader the server
// filters columns; the second receives whole rows.
func logTables(l schema.Layout, readers ...string) tables {
	load := func(ctx context.Context, c *client, d *dataset, _ int) error { return loadLog(ctx, c, d, l) }
	return tables{readers, load, func(name string, c *client, d *dataset, _ int) reader {
		r := &logReader{log: c.store.Events.Log(appID, l), d: d, compiled: affinity.Compile(d.strategy)}
		if name != readers[0] {
			r.log = c.whole.Events.Log(appID, l)
		}
		return r
	}}
}

// loadLog writes the data set to the engine's log.
func loadLog(ctx context.Context, c *client, d *dataset, l schema.Layout) error {
	log := c.store.Events.Log(appID, l)
	return eachShard(ctx, d.users, d.logShard(), func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			for i := sp.from; i < sp.to; i++ {
				if err := log.Append(ctx, d.rows(i)); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// rows are the events of a user in the form that the log takes.
func (d *dataset) rows(i int) []store.LogEvent {
	if d.name != "" {
		return d.logOf(i)
	}
	return logEvents(d.user(i), d.events(i, nil))
}

// logEvents are a user's events in the form that the log takes.
func logEvents(user string, events []entry) []store.LogEvent {
	log := make([]store.LogEvent, len(events))
	for i, e := range events {
		log[i] = store.LogEvent{User: user, Time: e.Time, ID: e.ID, Type: e.Type, Name: e.Name, Counts: e.Counts,
			Original: fmt.Appendf(nil, `{"eventType":%q,"eventName":%q,"index":"products","userToken":%q,"objectIDs":[%q]}`, e.Type, e.Name, user, e.ID)}
	}
	return log
}

// logReader recomputes from the engine's log.
type logReader struct {
	log      store.Log
	d        *dataset
	compiled *affinity.Compiled
}

func (r *logReader) spans(sp span) []store.UserRange {
	spans := make([]store.UserRange, 0, sp.to-sp.from)
	for i := sp.from; i < sp.to; i++ {
		spans = append(spans, store.UserRange{User: r.d.user(i), From: history.Pos{Time: r.d.window.From()}, To: history.End})
	}
	return spans
}

func (r *logReader) floor(ctx context.Context) error {
	return eachShard(ctx, r.d.users, r.d.logShard(), func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			return r.log.ReadFor(ctx, r.spans(sp), r.compiled, func(string, store.LogRow) error { return nil })
		}
	})
}

func (r *logReader) recompute(ctx context.Context, t *target) error {
	return eachShard(ctx, r.d.users, r.d.logShard(), func() func(context.Context, span) error {
		o, scorer, rows := t.output(), affinity.NewScorer(r.compiled, r.d.window), store.NewLogScorer(r.compiled)
		return func(ctx context.Context, sp span) error {
			user, events := "", 0
			end := func() error {
				if events == 0 {
					return nil
				}
				return o.add(user, scorer, events)
			}
			err := r.log.ReadFor(ctx, r.spans(sp), r.compiled, func(of string, row store.LogRow) error {
				if of != user {
					if err := end(); err != nil {
						return err
					}
					user, events = of, 0
					scorer.Reset(r.d.window)
				}
				events++
				return rows.Score(row, scorer)
			})
			if err := errors.Join(err, end()); err != nil {
				return err
			}
			return o.flush(ctx)
		}
	})
}
