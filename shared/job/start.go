package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

// Start makes sure that there is a job of that app and id, and that it goes on: a
// new one begins now, by the engine's clock, and its planning is ordered for after
// the delay, but not before the app's configuration is in force everywhere; of one
// that is there and has not ended, what it waits for is ordered again. It returns
// the job as it is. A crash between the two steps is mended by starting it again.
func (r *Runner) Start(ctx context.Context, job Job, delay time.Duration) (Job, error) {
	app, err := r.Apps.App(ctx, job.App)
	if err != nil {
		return Job{}, fmt.Errorf("start %s: %w", r.Name, err)
	}
	if job, err = r.Create(ctx, job); err != nil {
		return Job{}, err
	}
	if job.State != Planning {
		return job, r.ResumeJob(ctx, job)
	}
	return job, r.OrderPlan(ctx, job, app, delay)
}

// Create is the first step of Start: it stores a job that begins now, or finds the
// one that is there, whatever became of it.
func (r *Runner) Create(ctx context.Context, job Job) (Job, error) {
	job.State, job.StartedAt = Planning, stamp(r.Now())
	err := r.Jobs.Create(ctx, job)
	if errors.Is(err, ErrExists) {
		job, err = r.Jobs.Job(ctx, job.App, job.ID)
		if err != nil {
			return Job{}, fmt.Errorf("start %s: %w", r.Name, err)
		}
		return job, nil
	}
	if err != nil {
		return Job{}, fmt.Errorf("start %s: %w", r.Name, err)
	}
	attrs := []slog.Attr{slog.String("app", job.App), slog.String(r.Name, job.ID)}
	if job.StrategyVersion != 0 {
		attrs = append(attrs, slog.Int64("strategyVersion", job.StrategyVersion))
	}
	r.Log.LogAttrs(ctx, slog.LevelInfo, r.Name+" started", attrs...)
	return job, nil
}

// OrderPlan is the second step of Start, for a job that is planning.
func (r *Runner) OrderPlan(ctx context.Context, job Job, app config.App, delay time.Duration) error {
	return r.enqueuePlan(ctx, job, max(delay, r.unsettled(app)))
}
