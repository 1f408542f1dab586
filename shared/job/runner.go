package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Users streams the tokens of an app's users in the order of their rows.
type Users interface {
	ScanUserKeys(ctx context.Context, app, from, to string, fn func(user string) error) error
}

// Apps is the configuration itself, not a cache of it.
type Apps interface {
	App(ctx context.Context, appID string) (config.App, error)
	Apps(ctx context.Context) ([]string, error)
}

// Config says how the work is cut up.
type Config struct {
	// ShardUsers is how many users a shard is planned for: enough that its tasks
	// and documents cost little beside its work, few enough that all workers have
	// some of it.
	ShardUsers int `env:"RECOMPUTE_SHARD_USERS" envDefault:"5000"`
	// Budget is how long a task works before another goes on. It and the users that
	// are in work when it is over must fit in the 10 minutes after which Cloud Tasks
	// takes a task for lost.
	Budget time.Duration `env:"RECOMPUTE_BUDGET" envDefault:"4m"`
	// Attempts is how often a task may fail before its shard, or the job that it
	// plans, has failed. The queue must allow more.
	Attempts int `env:"RECOMPUTE_ATTEMPTS" envDefault:"8"`
}

// The bounds of a budget: a task must come to its first users, and have some
// minutes for what it has begun.
const (
	minBudget = time.Second
	maxBudget = 8 * time.Minute
)

// Validate names all faults of the configuration.
func (c Config) Validate() error {
	var faults []error
	if c.ShardUsers < 1 {
		faults = append(faults, fmt.Errorf("RECOMPUTE_SHARD_USERS %d: want 1 or more", c.ShardUsers))
	}
	if c.Budget < minBudget || c.Budget > maxBudget {
		faults = append(faults, fmt.Errorf("RECOMPUTE_BUDGET %s: want %s to %s", c.Budget, minBudget, maxBudget))
	}
	if c.Attempts < 1 {
		faults = append(faults, fmt.Errorf("RECOMPUTE_ATTEMPTS %d: want 1 or more", c.Attempts))
	}
	return errors.Join(faults...)
}

// Runner starts jobs and carries out their tasks. Safe for concurrent use. The
// parts must be set; those that only some functions need may be nil elsewhere.
type Runner struct {
	// Name is what its jobs are called, in paths, names of tasks, errors and log
	// lines: lower-case letters.
	Name string
	Config
	Jobs  Jobs
	Apps  Apps
	Queue queue.Queue
	Users Users
	Work  Work
	// Stale says what it is that Verify counts, as in "3 Stale after 2 passes
	// more". Empty: rows that are still not as they should be.
	Stale string
	// Settle is how long after a change of an app's configuration it is in force
	// everywhere: twice the time that it is cached.
	Settle time.Duration
	// Now is the engine's clock.
	Now func() time.Time
	Log *slog.Logger

	// Every is the least time between two checkpoints of a shard. Zero: a second,
	// which is as often as Firestore likes a document to be written. Negative: all
	// that a Work calls are written.
	Every time.Duration
	// Clock tells the real time, by which configurations come into force and what
	// has ended expires. Nil: time.Now.
	Clock func() time.Time
}

// New completes a runner.
func New(r Runner) *Runner {
	r.Every = cmp.Or(r.Every, time.Second)
	r.Stale = cmp.Or(r.Stale, "rows are still not as they should be")
	if r.Clock == nil {
		r.Clock = time.Now
	}
	return &r
}

// unsettled is how long the app's configuration is not yet in force everywhere.
func (r *Runner) unsettled(app config.App) time.Duration {
	return max(0, app.ChangedAt.Add(r.Settle).Sub(r.Clock()))
}

// expiry is when what ends now may be gone.
func (r *Runner) expiry() time.Time { return r.Clock().Add(Kept) }

// Cancel ends a job that has not ended. ErrEnded if it has, ErrNotFound if there
// is none.
func (r *Runner) Cancel(ctx context.Context, app, id string) (Job, error) {
	job, err := r.Jobs.Job(ctx, app, id)
	if err != nil {
		return Job{}, fmt.Errorf("cancel %s: %w", r.Name, err)
	}
	if job.State.Ended() {
		return job, fmt.Errorf("cancel %s: %s is %s: %w", r.Name, id, job.State, ErrEnded)
	}
	ended, err := r.end(ctx, job, Cancelled, "")
	if err == nil && ended.State != Cancelled {
		return ended, fmt.Errorf("cancel %s: %s is %s: %w", r.Name, id, ended.State, ErrEnded)
	}
	return ended, err
}

// end makes a job one that has ended, with what its shards have come to. One
// that has ended meanwhile stays as it is. It returns the job as it then is.
func (r *Runner) end(ctx context.Context, job Job, state State, reason string) (Job, error) {
	totals, err := r.Jobs.Totals(ctx, job.App, job.ID)
	if err != nil {
		return job, fmt.Errorf("end %s %s: %w", r.Name, job.ID, err)
	}
	ended, err := r.Jobs.Update(ctx, job.App, job.ID, func(j *Job) error {
		j.State, j.Error, j.Totals, j.FinishedAt, j.ExpiresAt = state, reason, totals, r.Now(), r.expiry()
		return nil
	})
	if errors.Is(err, ErrEnded) {
		return r.Jobs.Job(ctx, job.App, job.ID)
	}
	if err != nil {
		return job, fmt.Errorf("end %s %s: %w", r.Name, job.ID, err)
	}
	r.Log.LogAttrs(ctx, slog.LevelInfo, r.Name+" ended", slog.String("app", job.App), slog.String(r.Name, job.ID),
		slog.String("state", string(state)), slog.String("reason", reason), slog.Int64("users", totals.Users), slog.Int64("events", totals.Events))
	return ended, nil
}

// Supersede ends a job that has not ended, because something has taken its place.
// It returns the job as it then is.
func (r *Runner) Supersede(ctx context.Context, job Job, reason string) (Job, error) {
	return r.end(ctx, job, Superseded, reason)
}

// finish ends a running job whose shards have all ended. Otherwise it orders the
// tasks of those that are next, if the job has lanes: whoever ends a shard comes
// by here, and comes again until he came through.
func (r *Runner) finish(ctx context.Context, app, id string) error {
	job, err := r.Jobs.Job(ctx, app, id)
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	if job.State != Running {
		return nil
	}
	open, err := r.Jobs.ShardsIn(ctx, app, id, ShardOpen, max(1, job.Lanes))
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	if len(open) > 0 {
		if job.Lanes == 0 {
			return nil // they have their tasks
		}
		return r.orderOpen(ctx, job, open)
	}
	failed, err := r.Jobs.ShardsIn(ctx, app, id, ShardFailed, 1)
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	if len(failed) == 0 {
		_, err = r.end(ctx, job, Done, "")
		return err
	}
	_, err = r.end(ctx, job, Failed, failed[0].Error)
	return err
}

// Find returns a job with its totals as of now, or ErrNotFound.
func (r *Runner) Find(ctx context.Context, app, id string) (Job, error) {
	job, err := r.Jobs.Job(ctx, app, id)
	if err != nil || job.State.Ended() {
		return job, err
	}
	job.Totals, err = r.Jobs.Totals(ctx, app, id)
	return job, err
}

// List returns an app's latest jobs with their totals as of now, the newest first.
func (r *Runner) List(ctx context.Context, app string, limit int) ([]Job, error) {
	jobs, err := r.Jobs.List(ctx, app, limit)
	if err != nil {
		return nil, err
	}
	for i, job := range jobs {
		if job.State.Ended() {
			continue
		}
		if jobs[i].Totals, err = r.Jobs.Totals(ctx, app, job.ID); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}
