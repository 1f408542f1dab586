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

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
)

// StartStrategy starts the job for the app's active strategy, unless it exists
// in whatever state. A job that has expired (job.Kept) is started again.
func (r *Runner) StartStrategy(ctx context.Context, app string) (job.Job, error) {
	return r.start(ctx, app, 0, func(a config.App) (string, Params) {
		return string(ByStrategy) + "-" + strconv.FormatInt(a.StrategyVersion, 10), Params{Trigger: ByStrategy}
	})
}

// StartManual starts a job. It supersedes the app's unfinished jobs.
func (r *Runner) StartManual(ctx context.Context, app string, onlyStale bool) (job.Job, error) {
	return r.start(ctx, app, 0, func(config.App) (string, Params) {
		return job.NewID(string(Manual), r.Now()), Params{Trigger: Manual, OnlyStale: onlyStale}
	})
}

// Nightly starts the day's job of each app, by the engine's clock, with their
// starts spread evenly over a time in the given order. It is idempotent within
// a day. An app that has an unfinished job of another trigger gets none.
// Nightly returns how many apps have their job and how many have not.
func (r *Runner) Nightly(ctx context.Context, apps []string, spread time.Duration) (started, left int, err error) {
	id := string(Nightly) + "-" + r.Now().UTC().Format(time.DateOnly)
	has, failed := make([]bool, len(apps)), make([]error, len(apps))
	var g errgroup.Group
	g.SetLimit(maxStarts)
	for i, app := range apps {
		g.Go(func() error {
			delay := spread / time.Duration(len(apps)) * time.Duration(i)
			has[i], failed[i] = r.startNightly(ctx, app, id, delay)
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

// maxStarts bounds how many apps' jobs are started at a time.
const maxStarts = 8

func (r *Runner) startNightly(ctx context.Context, app, id string, delay time.Duration) (bool, error) {
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return false, err
	}
	for _, j := range unfinished {
		if job.ParamsOf[Params](j).Trigger != Nightly {
			r.Log.LogAttrs(ctx, slog.LevelInfo, "nightly recompute not started, another is under way",
				slog.String("app", app), slog.String("recompute", j.ID))
			// The queue may have lost its tasks. Enqueueing tasks that exist
			// changes nothing.
			return false, r.ResumeJob(ctx, j)
		}
	}
	_, err = r.start(ctx, app, delay, func(config.App) (string, Params) {
		return id, Params{Trigger: Nightly, OnlyStale: true, Maintain: true}
	})
	return err == nil, err
}

// start creates a job, makes it the app's only unfinished one, and enqueues its
// planning. If the process dies in between, starting the same job again
// completes the start.
func (r *Runner) start(ctx context.Context, appID string, delay time.Duration, draft func(config.App) (id string, p Params)) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start recompute: %w", err)
	}
	id, p := draft(app)
	p.StrategyVersion, p.RetentionDays = app.StrategyVersion, app.RetentionDays
	j, err := r.Create(ctx, job.Job{App: appID, ID: id, Params: p})
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

// byPrecedence orders the jobs of an app, the one that continues first: those
// of other triggers before nightly ones, then those for newer strategies, then
// newer ones.
func byPrecedence(a, b job.Job) int {
	p, q := job.ParamsOf[Params](a), job.ParamsOf[Params](b)
	if x, y := p.Trigger == Nightly, q.Trigger == Nightly; x != y {
		if x {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(q.StrategyVersion, p.StrategyVersion), job.NewestFirst(a, b))
}
