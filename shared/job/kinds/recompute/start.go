package recompute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// StartStrategy starts the job for the app's active strategy. A scoring version
// gets one job, however often it is started, until that job expires (see
// job.Kept).
func (r *Runner) StartStrategy(ctx context.Context, app string) (job.Job, error) {
	return r.start(ctx, app, func(a config.App) (string, Params) {
		return string(byStrategy) + "-" + strconv.FormatInt(a.ScoringVersion, 10), Params{Trigger: byStrategy}
	})
}

// Options are what an operator chooses of a job. Full computes every profile, as a job
// does without OnlyStale, and maintains the users' histories as well.
type Options struct{ OnlyStale, Fold, Full bool }

// StartManual starts a job. It supersedes the app's unfinished jobs.
func (r *Runner) StartManual(ctx context.Context, app string, o Options) (job.Job, error) {
	return r.start(ctx, app, func(config.App) (string, Params) {
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
	return r.start(ctx, app, func(config.App) (string, Params) {
		return id, Params{Trigger: Import, OnlyStale: true, Fold: true}
	})
}

// maxListed is how many of the latest jobs a start looks at.
const maxListed = 10

// Nightly starts the night's job of an app. It is idempotent. A full night computes every
// profile, otherwise only stale ones; a date may have a job of each kind. Nightly starts none
// beside an unfinished job of a strategy or an operator, and unless the night is full, of a
// full one: it resumes that job.
func (r *Runner) Nightly(ctx context.Context, app string, night job.Night) error {
	id := string(Nightly) + "-" + night.Date
	if night.Full {
		id += fullSuffix
	}
	p := Params{Trigger: Nightly, OnlyStale: !night.Full, Maintain: true}
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return fmt.Errorf("start recompute: %w", err)
	}
	for _, j := range unfinished {
		if rank(job.ParamsOf[Params](j)) < rank(p) {
			r.Log.LogAttrs(ctx, slog.LevelInfo, "nightly recompute not started, another is under way",
				slog.String("app", app), slog.String("recompute", j.ID))
			// The queue may have lost its tasks. To enqueue tasks that exist
			// changes nothing.
			return r.ResumeJob(ctx, j)
		}
	}
	_, err = r.start(ctx, app, func(config.App) (string, Params) { return id, p })
	return err
}

// fullSuffix ends the id of a nightly job that computes every profile.
const fullSuffix = "-full"

// start creates a job, supersedes the app's other unfinished jobs, and enqueues
// the plan task. If the process dies in between, the next start of the same job
// completes these steps.
func (r *Runner) start(ctx context.Context, appID string,
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
	j, err := r.Create(ctx, job.Job{App: appID, ID: id, Concurrency: r.atOnce(p), Params: p}, 0)
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
	return j, r.EnqueuePlan(ctx, j, app, 0)
}

// atOnce returns how many shards of a job have tasks at a time. In the night, when the jobs of
// all apps meet in the queue, it is half: the largest app leaves room to the others.
func (r *Runner) atOnce(p Params) int {
	if p.Trigger != Nightly || r.Concurrency < 2 {
		return r.Concurrency
	}
	return r.Concurrency / 2
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
