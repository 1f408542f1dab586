package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// NewID makes an id that no other job has, from the prefix, the time and a
// random suffix.
func NewID(prefix string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%s", prefix, now.UTC().Format("20060102T150405Z"), strings.ToLower(rand.Text()[:6]))
}

// Start creates the job, or resumes it if it exists. The planning task of a new
// job runs after delay, and never before the app's configuration has
// propagated. For an unfinished job Start enqueues again what the job waits
// for. It returns the job. Start is idempotent.
func (r *Runner) Start(ctx context.Context, job Job, delay time.Duration) (Job, error) {
	app, err := r.Config.App(ctx, job.App)
	if err != nil {
		return Job{}, fmt.Errorf("start %s: %w", r.Name, err)
	}
	if job, err = r.Create(ctx, job, delay); err != nil {
		return Job{}, err
	}
	if job.State != Planning {
		return job, r.ResumeJob(ctx, job)
	}
	return job, r.EnqueuePlan(ctx, job, app, delay)
}

// Create is the first step of Start: it stores a job that starts now, and whose
// planning is due after delay. If the job exists, Create returns the stored job, in
// any state.
func (r *Runner) Create(ctx context.Context, job Job, delay time.Duration) (Job, error) {
	job.State, job.StartedAt = Planning, Stamp(r.Now())
	job.Queue, job.QueuedAt = queue.Of(r.Queue, job.App), Stamp(job.StartedAt.Add(max(0, delay)))
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
	if job.Params != nil {
		attrs = append(attrs, job.Params.LogAttrs()...)
	}
	r.Log.LogAttrs(ctx, slog.LevelInfo, r.Name+" started", attrs...)
	return job, nil
}

// EnqueuePlan is the second step of Start, for a job that is planning.
func (r *Runner) EnqueuePlan(ctx context.Context, job Job, app config.App, delay time.Duration) error {
	return r.enqueuePlanStep(ctx, job, max(delay, r.unpropagated(app)))
}

// Elect chooses the unfinished job of an app that continues, the first in the
// order of compare, and returns it. It supersedes the others; reason is a
// format in which %s stands for the winner's id. It returns ErrNotFound if the
// app has no unfinished job. If two processes each create a job and then call
// Elect, the later call sees both jobs.
func (r *Runner) Elect(ctx context.Context, app string, compare func(a, b Job) int, reason string) (Job, error) {
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return Job{}, fmt.Errorf("list the unfinished %s jobs: %w", r.Name, err)
	}
	if len(unfinished) == 0 {
		return Job{}, ErrNotFound
	}
	winner := slices.MinFunc(unfinished, compare)
	for _, other := range unfinished {
		if other.ID == winner.ID {
			continue
		}
		if _, err := r.Supersede(ctx, other, fmt.Sprintf(reason, winner.ID)); err != nil {
			return Job{}, err
		}
	}
	return winner, nil
}

// StartAlone starts a job of an app that has one unfinished job of its kind at a time. create returns the new job. If
// another one is unfinished, the oldest continues, and StartAlone returns it and busy. what names the kind to people.
func (r *Runner) StartAlone(ctx context.Context, app config.App, what string, busy error,
	create func() (Job, error)) (Job, error) {
	elect := func() (Job, error) {
		oldestFirst := func(a, b Job) int { return NewestFirst(b, a) }
		return r.Elect(ctx, app.ID, oldestFirst, what+" %s is under way already")
	}
	if j, err := elect(); err == nil {
		return j, errors.Join(busy, r.ResumeJob(ctx, j))
	} else if !errors.Is(err, ErrNotFound) {
		return Job{}, err
	}
	j, err := create()
	if err == nil {
		j, err = r.Create(ctx, j, 0)
	}
	if err != nil {
		return Job{}, err
	}
	winner, err := elect()
	switch {
	case errors.Is(err, ErrNotFound): // cancelled already
		return r.Jobs.Job(ctx, app.ID, j.ID)
	case err != nil:
		return Job{}, err
	case winner.ID != j.ID:
		return winner, busy
	}
	return j, r.EnqueuePlan(ctx, j, app, 0)
}
