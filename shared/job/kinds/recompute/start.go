package recompute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// StartStrategy starts the job for the app's active strategy. A scoring version
// gets one job, however often it is started, until that job expires (see
// job.Kept).
func (r *Runner) StartStrategy(ctx context.Context, app string) (job.Job, error) {
	return r.start(ctx, app, 0, func(a config.App) (string, Params) {
		return string(byStrategy) + "-" + strconv.FormatInt(a.ScoringVersion, 10), Params{Trigger: byStrategy}
	})
}

// Options are what an operator chooses of a job. Full computes every profile, as a job
// does without OnlyStale, and maintains the users' histories as well.
type Options struct{ OnlyStale, Fold, Full bool }

// StartManual starts a job. It supersedes the app's unfinished jobs.
func (r *Runner) StartManual(ctx context.Context, app string, o Options) (job.Job, error) {
	return r.start(ctx, app, 0, func(config.App) (string, Params) {
		return job.NewID(string(Manual), r.Now()),
			Params{Trigger: Manual, OnlyStale: o.OnlyStale, Maintain: o.Full, Fold: o.Fold}
	})
}

// ErrBusy means that another recompute of the app is under way.
var ErrBusy = errors.New("another recompute of the app is under way")

// StartImport starts the job that follows an app's last import, at the given time:
// it computes stale profiles and folds all histories. It is idempotent. If such a
// job began after the import, StartImport returns that one. It returns ErrBusy, and the
// newest such job, while one of another start is unfinished: a job over all users, begun
// again for each import, might never end.
func (r *Runner) StartImport(ctx context.Context, app string, last time.Time) (job.Job, error) {
	id := string(Import) + "-" + strconv.FormatInt(last.UnixMilli(), 10)
	latest, err := r.Jobs.List(ctx, app, maxListed)
	if err != nil {
		return job.Job{}, fmt.Errorf("list the latest recomputes: %w", err)
	}
	var busy []job.Job
	for _, j := range latest {
		if j.ID == id || j.State.Ended() && j.State != job.Done {
			continue
		}
		if job.ParamsOf[Params](j).Fold && !j.StartedAt.Before(last) {
			return j, r.ResumeJob(ctx, j)
		}
		if !j.State.Ended() {
			busy = append(busy, j)
		}
	}
	if len(busy) > 0 {
		return busy[0], fmt.Errorf("start recompute: %w", ErrBusy)
	}
	return r.start(ctx, app, 0, func(config.App) (string, Params) {
		return id, Params{Trigger: Import, OnlyStale: true, Fold: true}
	})
}

// maxListed is how many of the latest jobs a start looks at.
const maxListed = 10

// StartNight starts each app's job for the day of the engine's clock, in the given
// order, and spreads the starts evenly over the time spread. It is idempotent
// within a day. full computes every profile, otherwise only stale ones; a day may have a
// job of each kind. StartNight skips an app with an unfinished job of a strategy or an
// operator, and unless full, of a full round.
// It returns for how many apps the day's job exists and for how many it does not.
func (r *Runner) StartNight(ctx context.Context, apps []string, spread time.Duration,
	full bool) (started, skipped int, err error) {
	id := string(Nightly) + "-" + r.Now().UTC().Format(time.DateOnly)
	if full {
		id += fullSuffix
	}
	has, failed := make([]bool, len(apps)), make([]error, len(apps))
	var g errgroup.Group
	g.SetLimit(maxStarts)
	for i, app := range apps {
		g.Go(func() error {
			delay := spread / time.Duration(len(apps)) * time.Duration(i)
			has[i], failed[i] = r.startNightly(ctx, app, id, delay, full)
			return nil
		})
	}
	_ = g.Wait() // errors are in failed: one app's error does not stop the others
	for _, ok := range has {
		if ok {
			started++
		}
	}
	return started, len(apps) - started, errors.Join(failed...)
}

// fullSuffix ends the id of a nightly job that computes every profile.
const fullSuffix = "-full"

// maxStarts bounds how many apps' jobs are started at a time.
const maxStarts = 8

func (r *Runner) startNightly(ctx context.Context, app, id string, delay time.Duration, full bool) (bool, error) {
	p := Params{Trigger: Nightly, OnlyStale: !full, Maintain: true}
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return false, err
	}
	for _, j := range unfinished {
		if rank(job.ParamsOf[Params](j)) < rank(p) {
			r.Log.LogAttrs(ctx, slog.LevelInfo, "nightly recompute not started, another is under way",
				slog.String("app", app), slog.String("recompute", j.ID))
			// The queue may have lost its tasks. To enqueue tasks that exist
			// changes nothing.
			return false, r.ResumeJob(ctx, j)
		}
	}
	_, err = r.start(ctx, app, delay, func(config.App) (string, Params) { return id, p })
	return err == nil, err
}

// start creates a job, supersedes the app's other unfinished jobs, and enqueues
// the plan task. If the process dies in between, the next start of the same job
// completes these steps.
func (r *Runner) start(ctx context.Context, appID string, delay time.Duration,
	draft func(config.App) (id string, p Params)) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start recompute: %w", err)
	}
	id, p := draft(app)
	p.StrategyVersion, p.ScoringVersion, p.RetentionDays = app.StrategyVersion, app.ScoringVersion, app.RetentionDays
	if !p.Fold {
		if p.Fold, err = r.owesFolds(ctx, appID, id); err != nil {
			return job.Job{}, fmt.Errorf("start recompute: %w", err)
		}
	}
	j, err := r.Create(ctx, job.Job{App: appID, ID: id, Concurrency: r.Concurrency, Params: p}, delay)
	if err != nil || j.State.Ended() {
		return j, err
	}
	switch winner, err := r.Elect(ctx, appID, byPrecedence, "recompute %s takes its place"); {
	case err != nil && !errors.Is(err, job.ErrNotFound):
		return j, err
	case err != nil, winner.ID != j.ID: // the job has ended since it was created
		return r.Jobs.Job(ctx, appID, j.ID)
	case winner.State != job.Planning:
		return winner, nil
	}
	return j, r.EnqueuePlan(ctx, j, app, delay)
}

// owesFolds reports whether a job of the app that folds has lost its place, or is
// about to lose it to the job that starts, and no job has ended since. If two jobs
// start at the same instant, the folds may be left to the nightly round.
func (r *Runner) owesFolds(ctx context.Context, app, id string) (bool, error) {
	latest, err := r.Jobs.List(ctx, app, maxListed)
	if err != nil {
		return false, fmt.Errorf("list the latest recomputes: %w", err)
	}
	for _, j := range latest {
		switch {
		case j.ID == id:
		case j.State.Ended() && j.State != job.Superseded:
			return false, nil
		case job.ParamsOf[Params](j).Fold:
			return true, nil
		}
	}
	return false, nil
}

// byPrecedence orders the unfinished jobs of an app; the first one continues.
// Nightly jobs come after others, of these the full ones first, and those of imports
// last. Within a rank a newer
// scoring comes first, then a newer job.
func byPrecedence(a, b job.Job) int {
	p, q := job.ParamsOf[Params](a), job.ParamsOf[Params](b)
	return cmp.Or(cmp.Compare(rank(p), rank(q)), cmp.Compare(q.Scoring(), p.Scoring()), job.NewestFirst(a, b))
}

// rank is lower for a job that is more urgent.
func rank(p Params) int {
	switch {
	case p.Trigger == Import:
		return 3
	case p.Trigger == Nightly && p.OnlyStale:
		return 2
	case p.Trigger == Nightly:
		return 1
	}
	return 0
}
