package recompute

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
)

// StartStrategy makes sure that there is a job for the app's active strategy: it
// starts one unless there was one already, whatever became of it. One that is not
// kept any more (job.Kept) is done again.
func (r *Runner) StartStrategy(ctx context.Context, app string) (job.Job, error) {
	return r.start(ctx, app, 0, func(a config.App) job.Job {
		return job.Job{ID: string(ByStrategy) + "-" + strconv.FormatInt(a.StrategyVersion, 10), Trigger: ByStrategy}
	})
}

// StartManual starts a job. It supersedes those of the app that have not ended.
func (r *Runner) StartManual(ctx context.Context, app string, onlyStale bool) (job.Job, error) {
	return r.start(ctx, app, 0, func(config.App) job.Job {
		id := fmt.Sprintf("%s-%s-%s", ByHand, r.Now().UTC().Format("20060102T150405Z"), strings.ToLower(rand.Text()[:6]))
		return job.Job{ID: id, Trigger: ByHand, OnlyStale: onlyStale}
	})
}

// Nightly starts for each of some apps the job of the day that it is by the engine's
// clock, with their beginnings spread evenly over a time in the order
// given. Doing it again the same day changes nothing. An app with a job of
// another kind under way gets none. It returns how many apps have their job and
// how many not.
func (r *Runner) Nightly(ctx context.Context, apps []string, spread time.Duration) (started, left int, err error) {
	id := string(ByNight) + "-" + r.Now().UTC().Format(time.DateOnly)
	has, failed := make([]bool, len(apps)), make([]error, len(apps))
	var g errgroup.Group
	g.SetLimit(startsAtOnce)
	for i, app := range apps {
		g.Go(func() error {
			delay := spread / time.Duration(len(apps)) * time.Duration(i)
			has[i], failed[i] = r.startNightly(ctx, app, id, delay)
			return nil
		})
	}
	_ = g.Wait() // the errors are kept apart: one app's does not keep the others back
	for _, ok := range has {
		if ok {
			started++
		}
	}
	return started, len(apps) - started, errors.Join(failed...)
}

// startsAtOnce bounds how many apps' jobs are started at a time.
const startsAtOnce = 8

func (r *Runner) startNightly(ctx context.Context, app, id string, delay time.Duration) (bool, error) {
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return false, err
	}
	for _, j := range unfinished {
		if j.Trigger != ByNight {
			r.Log.LogAttrs(ctx, slog.LevelInfo, "nightly recompute not started, another is under way",
				slog.String("app", app), slog.String("recompute", j.ID))
			// Its tasks may have been lost: asking for those that live changes nothing.
			return false, r.ResumeJob(ctx, j)
		}
	}
	_, err = r.start(ctx, app, delay, func(config.App) job.Job {
		return job.Job{ID: id, Trigger: ByNight, OnlyStale: true, Maintain: true}
	})
	return err == nil, err
}

// start makes a job and orders its planning, once it is the only one of its app. A
// crash between the two is mended by starting the same job again.
func (r *Runner) start(ctx context.Context, appID string, delay time.Duration, draft func(config.App) job.Job) (job.Job, error) {
	app, err := r.Apps.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start recompute: %w", err)
	}
	j := draft(app)
	j.App, j.StrategyVersion, j.RetentionDays = appID, app.StrategyVersion, app.RetentionDays
	if j, err = r.Create(ctx, j); err != nil || j.State.Ended() {
		return j, err
	}
	if j, err = r.leaveOne(ctx, j); err != nil || j.State != job.Planning {
		return j, err
	}
	return j, r.OrderPlan(ctx, j, app, delay)
}

// leaveOne supersedes all unfinished jobs of an app but the one that outranks the
// others, which need not be the given one. It returns the given one.
func (r *Runner) leaveOne(ctx context.Context, j job.Job) (job.Job, error) {
	unfinished, err := r.Jobs.Unfinished(ctx, j.App)
	if err != nil {
		return j, fmt.Errorf("look for other recomputes: %w", err)
	}
	best := j
	for _, other := range unfinished {
		if outranks(other, best) {
			best = other
		}
	}
	for _, other := range unfinished {
		if other.ID == best.ID {
			continue
		}
		ended, err := r.Supersede(ctx, other, "recompute "+best.ID+" takes its place")
		if err != nil {
			return j, err
		}
		if other.ID == j.ID {
			j = ended
		}
	}
	return j, nil
}

// outranks tells which of two jobs of an app stays: nightly ones give way to
// others, and of two of a kind the one of the older strategy, then the older one.
func outranks(j, other job.Job) bool {
	if a, b := j.Trigger == ByNight, other.Trigger == ByNight; a != b {
		return b
	}
	if j.StrategyVersion != other.StrategyVersion {
		return j.StrategyVersion > other.StrategyVersion
	}
	return job.NewestFirst(j, other) < 0
}
