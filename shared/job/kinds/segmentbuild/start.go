package segmentbuild

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// StartManual starts a build. It supersedes the app's unfinished one. ErrOff if segments
// are off.
func (r *Runner) StartManual(ctx context.Context, app string) (job.Job, error) {
	return r.start(ctx, app, manual, job.NewID(string(manual), r.Now()), 0)
}

// StartAfter starts the build that follows a recompute which is done, if segments are
// on. It is idempotent.
func (r *Runner) StartAfter(ctx context.Context, recompute job.Job) error {
	_, err := r.start(ctx, recompute.App, Recompute, string(Recompute)+"-"+recompute.ID, 0)
	if errors.Is(err, ErrOff) || errors.Is(err, config.ErrNotFound) {
		return nil
	}
	return err
}

// nightlyDelay is how long after an app's nightly recompute its build starts, so that
// most profiles are valid.
const nightlyDelay = 30 * time.Minute

// Nightly starts the night's build of an app that has segments on. It is idempotent. An app
// with an unfinished build keeps that one.
func (r *Runner) Nightly(ctx context.Context, app string, night job.Night) error {
	err := r.startNightly(ctx, app, string(nightly)+"-"+night.Date, nightlyDelay)
	if errors.Is(err, ErrOff) {
		return nil
	}
	return err
}

func (r *Runner) startNightly(ctx context.Context, app, id string, delay time.Duration) error {
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return fmt.Errorf("list the unfinished builds of segments: %w", err)
	}
	for _, j := range unfinished {
		if j.ID != id {
			return r.ResumeJob(ctx, j)
		}
	}
	_, err = r.start(ctx, app, nightly, id, delay)
	return err
}

// startChanged starts the build that a manifest with too many changed users, or of another holdout, needs. It
// is idempotent. An app with an unfinished build keeps that one.
func (r *Runner) startChanged(ctx context.Context, app string, version int64) error {
	id := string(changes) + "-" + strconv.FormatInt(version, 10) + "-" +
		strconv.FormatInt(r.Now().UnixMilli()/time.Hour.Milliseconds(), 10)
	return r.startNightly(ctx, app, id, 0)
}

// start creates a build, supersedes the app's other unfinished ones, and enqueues the
// plan task. If the process dies in between, the next start of the same build completes
// these steps.
func (r *Runner) start(ctx context.Context, appID string, trigger Trigger, id string,
	delay time.Duration) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err == nil && !app.Segments.On() {
		err = ErrOff
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("start a build of segments: %w", err)
	}
	j, err := r.Create(ctx, job.Job{App: appID, ID: id, Concurrency: concurrency, Params: Params{
		Trigger: trigger, Generation: fmt.Sprintf("g%012x-%s", max(r.Now().UnixMilli(), 0), id),
		ScoringVersion: app.ScoringVersion, RetentionDays: app.RetentionDays, Since: app.Segments.Since,
		Holdout: app.Holdout.ID(),
	}}, delay)
	if err != nil || j.State.Ended() {
		return j, err
	}
	switch winner, err := r.Elect(ctx, appID, job.NewestFirst, "segments build %s takes its place"); {
	case err != nil && !errors.Is(err, job.ErrNotFound):
		return j, err
	case err != nil, winner.ID != j.ID: // the build has ended since it was created
		return r.Jobs.Job(ctx, appID, j.ID)
	case j.State != job.Planning:
		return j, r.ResumeJob(ctx, j)
	}
	return j, r.EnqueuePlan(ctx, j, app, delay)
}

// Progress says in a sentence how far the app's unfinished build is, or that none runs.
func (r *Runner) Progress(ctx context.Context, app string) (string, error) {
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return "", fmt.Errorf("list the unfinished builds of segments: %w", err)
	}
	if len(unfinished) == 0 {
		return "no build runs", nil
	}
	totals, err := r.Jobs.Totals(ctx, app, unfinished[0].ID)
	if err != nil {
		return "", fmt.Errorf("read the totals of %s: %w", unfinished[0].ID, err)
	}
	return fmt.Sprintf("build %s is %s and has packed %d of %d users", unfinished[0].ID, unfinished[0].State,
		totals.Counts[job.CountUsers], totals.PlannedUsers), nil
}
