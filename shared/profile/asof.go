package profile

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// instant is a time (ms) of the past that a computation is as of. now is the clock, by which
// the retention has ended for older events.
type instant struct{ at, now int64 }

// window sets the window of a user to the instant. Tombstone and opt-out are those of now: what
// was deleted since is gone.
func (i instant) window(u *user, app config.App) {
	u.setWindow(i.at, app)
	u.window.Since = max(0, affinity.Window{Now: i.now, RetentionDays: app.RetentionDays}.From())
}

// end is the position in the log from which nothing counts.
func (i instant) end() history.Pos { return history.Pos{Time: i.at + 1} }

// before leaves out the blocks and ranges of the log that begin after the instant.
func (i instant) before(blocks []history.Block, gaps []history.Range) ([]history.Block, []history.Range) {
	var some []history.Block
	for _, b := range blocks {
		if b.From.Compare(i.end()) < 0 {
			some = append(some, b)
		}
	}
	var ranges []history.Range
	for _, g := range gaps {
		if g.To.Compare(i.end()) > 0 {
			g.To = i.end()
		}
		if g.From.Compare(g.To) < 0 {
			ranges = append(ranges, g)
		}
	}
	return some, ranges
}

// question is what a computation that stores nothing answers.
type question struct {
	// compiled is the strategy of the app that the question comes with, which need not be the
	// active one; nil: it is compiled from that app.
	compiled *affinity.Compiled
	why      purpose
	at       *instant // nil: now
}

// ComputeRanking computes what ReadRanking returns, under the strategy of app,
// which need not be the active one, and stores nothing. c is that strategy.
func (e *Engine) ComputeRanking(ctx context.Context, app config.App, user string,
	c *affinity.Compiled) (Result, error) {
	return e.ask(ctx, app, user, question{compiled: c, why: forReading})
}

// ComputeAt computes a user's profile as of an instant of the past, under the strategy of app,
// which need not be the active one, and stores nothing. It counts the events of times up to the
// instant that are in the log at now, the engine's clock: those that are neither deleted, nor
// of a type that the user has opted out of, nor older than the retention allows at now. At the
// instant the engine counted older ones, too: Result.Since says where they end. The
// instant must not be later than now.
func (e *Engine) ComputeAt(ctx context.Context, app config.App, user string, at, now time.Time) (Result, error) {
	return e.ask(ctx, app, user, question{why: forScores, at: &instant{at.UnixMilli(), now.UnixMilli()}})
}

func (e *Engine) ask(ctx context.Context, app config.App, user string, q question) (Result, error) {
	at, err := e.operations(app)
	if err != nil {
		return Result{}, err
	}
	return at.ask(ctx, app, user, q)
}

// ask answers a question from the row of the written cluster.
func (r *reader) ask(ctx context.Context, app config.App, token string, q question) (Result, error) {
	row, err := r.store.Users.ReadPrimary(ctx, app.ID, token, store.UserHistory)
	if err != nil {
		return Result{}, err
	}
	return r.answer(ctx, app, token, row, q)
}

// answer answers a question about a user whose row the caller has read.
func (r *reader) answer(ctx context.Context, asked config.App, token string, row store.User,
	q question) (result Result, err error) {
	computations, _ := r.begin(ctx, asked.ID, []string{token}, map[string]store.User{token: row})
	computations[0].at = q.at
	if q.compiled == nil {
		q.compiled = r.compile(asked)
	}
	share := r.memory.Share()
	defer share.Close()
	app, err := r.logs.retryOnSchemaChange(ctx, asked, func(app config.App) error {
		w := work{app, q.compiled, q.why, share, r.rereader(app.ID), r.limits.patience}
		return r.computer.compute(ctx, w, computations, r.checked(ctx, app, func(c *computation) error {
			result = Result{Profile: c.profile(app), Session: c.session, Since: c.window.Since,
				HeldOut: heldOut(app, token, c.row)}
			return admission.Take(ctx, affinityBytes*int64(len(result.Affinities)))
		}))
	})
	if err != nil {
		return Result{}, err
	}
	if fault := computations[0].fault; fault != nil {
		return Result{}, fault
	}
	// A change of the schemas leads to the active strategy again.
	app.Strategy, app.StrategyVersion, app.ScoringVersion = asked.Strategy, asked.StrategyVersion, asked.ScoringVersion
	result.App = app
	return result, nil
}

// ask asks the region that holds the user.
func (e enRoute) ask(ctx context.Context, app config.App, token string, q question) (Result, error) {
	return e.staying(ctx, app, token, store.UserHistory, func(found place) (Result, error) {
		return found.at.reader.answer(ctx, app, token, found.row, q)
	})
}
