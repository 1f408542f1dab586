package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
)

// loadWide writes the data set to the engine's log.
func loadWide(ctx context.Context, c *client, d *dataset, _ Recompute) error {
	return eachShard(ctx, d.users, logShard, func() func(context.Context, span) error {
		var events []entry
		return func(ctx context.Context, sp span) error {
			for i := sp.from; i < sp.to; i++ {
				events = d.events(i, events)
				if err := c.store.AppendLog(ctx, appID, logEvents(d.user(i), events)); err != nil {
					return err
				}
			}
			return nil
		}
	})
}

// logEvents are a user's events as they are written to the log.
func logEvents(user string, events []entry) []store.LogEvent {
	log := make([]store.LogEvent, len(events))
	for i, e := range events {
		log[i] = store.LogEvent{User: user, Time: e.Time, ID: e.ID, Type: e.Type, Name: e.Name, Counts: e.Counts,
			Original: fmt.Appendf(nil, `{"eventType":%q,"eventName":%q,"index":"products","userToken":%q,"objectIDs":[%q]}`, e.Type, e.Name, user, e.ID)}
	}
	return log
}

// wideReader recomputes from the engine's log.
type wideReader struct {
	store    *store.Store
	d        *dataset
	compiled *affinity.Compiled
}

func openWide(name string, c *client, d *dataset, _ Recompute) (reader, error) {
	r := &wideReader{store: c.store, d: d, compiled: affinity.Compile(d.strategy)}
	if name == WideClient {
		r.store = c.whole
	}
	return r, nil
}

func (r *wideReader) spans(sp span) []store.Span {
	spans := make([]store.Span, 0, sp.to-sp.from)
	for i := sp.from; i < sp.to; i++ {
		spans = append(spans, store.Span{User: r.d.user(i), From: history.Pos{Time: window.From()}, To: history.End})
	}
	return spans
}

func (r *wideReader) floor(ctx context.Context) error {
	return eachShard(ctx, r.d.users, logShard, func() func(context.Context, span) error {
		return func(ctx context.Context, sp span) error {
			return r.store.ReadLogFor(ctx, appID, r.spans(sp), r.compiled, func(string, store.LogRow) error { return nil })
		}
	})
}

func (r *wideReader) recompute(ctx context.Context, t *target) error {
	return eachShard(ctx, r.d.users, logShard, func() func(context.Context, span) error {
		o, scorer, rows := t.output(), affinity.NewScorer(r.compiled, window), store.NewLogScorer(r.compiled)
		return func(ctx context.Context, sp span) error {
			user, events := "", 0
			end := func() error {
				if events == 0 {
					return nil
				}
				return o.add(user, scorer, events)
			}
			err := r.store.ReadLogFor(ctx, appID, r.spans(sp), r.compiled, func(of string, row store.LogRow) error {
				if of != user {
					if err := end(); err != nil {
						return err
					}
					user, events = of, 0
					scorer.Reset(window)
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
