package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Users streams the tokens of an app's users in the order of their rows.
type Users interface {
	ScanUserKeys(ctx context.Context, app, from, to string, fn func(user string) error) error
}

// Config reads the configuration itself, not a cache of it.
type Config interface {
	App(ctx context.Context, appID string) (config.App, error)
}

// Settings bound the shards and tasks of all kinds of jobs.
type Settings struct {
	// ShardUsers is how many users a new shard has. It should be large enough
	// that tasks and documents cost little beside the work, and small enough
	// that every worker gets a shard.
	ShardUsers int `env:"JOB_SHARD_USERS" envDefault:"5000"`
	// Budget is how long a task works before it enqueues the next task. At the
	// end of its budget a task still completes the users that it has begun.
	// Both must fit in the 10 minutes after which Cloud Tasks gives up on a
	// task.
	Budget time.Duration `env:"JOB_BUDGET" envDefault:"4m"`
	// Attempts is how often a shard task may fail before its shard fails, and a
	// plan task before its job fails. The queue must allow more attempts.
	Attempts int `env:"JOB_ATTEMPTS" envDefault:"8"`
	// Concurrency is how many shards of a recompute have tasks at a time. The queue runs
	// tasks about in the order in which it gets them. So a job that comes later
	// waits for at most this number of tasks of each job before it, not for all
	// shards of a large app. 0: all shards have tasks.
	Concurrency int `env:"JOB_CONCURRENCY" envDefault:"8"`
	// MovedAtOnce is how many users a task of a region move moves at a time. 0: 4, which leaves
	// capacity of the database for clients. An engine that is one process with its database
	// sets less.
	MovedAtOnce int
}

// The bounds of a budget: a task must reach its first users, and must have some
// minutes to complete the users that it has begun.
const (
	minBudget = time.Second
	maxBudget = 8 * time.Minute
)

// Validate returns an error that names every fault of the settings.
func (s Settings) Validate() error {
	var faults []error
	if s.ShardUsers < 1 {
		faults = append(faults, fmt.Errorf("JOB_SHARD_USERS %d: want 1 or more", s.ShardUsers))
	}
	if s.Budget < minBudget || s.Budget > maxBudget {
		faults = append(faults, fmt.Errorf("JOB_BUDGET %s: want %s to %s", s.Budget, minBudget, maxBudget))
	}
	if s.Attempts < 1 {
		faults = append(faults, fmt.Errorf("JOB_ATTEMPTS %d: want 1 or more", s.Attempts))
	}
	if s.Concurrency < 0 {
		faults = append(faults, fmt.Errorf("JOB_CONCURRENCY %d: want 0 or more", s.Concurrency))
	}
	return errors.Join(faults...)
}

// Runner starts jobs and runs their tasks. It is safe for concurrent use. The
// caller sets the fields that its calls use; the last three have defaults.
type Runner struct {
	// Name is the name of the jobs in paths, task names, errors and log lines,
	// in lower-case letters.
	Name string
	// Collection is that of Jobs.
	Collection Collection
	Settings
	Jobs   Jobs
	Config Config
	Queue  queue.Queue
	// Users are nil if the jobs are not over users.
	Users Users
	// UsersIn returns the users of one region, of an app whose users live in regions of their own.
	UsersIn func(region string) Users
	// Whole says that a job is one shard over the users of all regions. It may say nothing of users who do not live in
	// the region of the app: see Abroad.
	Whole bool
	Work  Work
	// StaleText describes the users or rows that Verify counts, as in "3
	// StaleText after 2 more passes". Default: rows are still stale.
	StaleText string
	// Propagation is the time after which every process has read a change of an
	// app's configuration: twice the time for which a process caches it.
	Propagation time.Duration
	// Now is the engine's clock.
	Now func() time.Time
	Log *slog.Logger

	// DuringMoves says that the jobs work while their app moves to another region, as those
	// of the move itself do. Other jobs wait until the app has arrived.
	DuringMoves bool

	// CheckpointEvery is the shortest time between two checkpoints of a shard.
	// Default: a second, because Firestore recommends at most one write a
	// second to a document. If it is negative, every call of progress makes a
	// checkpoint.
	CheckpointEvery time.Duration
	// Clock is the real clock, by which configurations propagate and ended jobs
	// expire. Default: time.Now.
	Clock func() time.Time
}

// Kind is the runner of one kind of jobs: a type of its own that embeds a Runner.
type Kind interface {
	// Core returns the embedded Runner.
	Core() *Runner
	// Resume enqueues again the tasks that an app's unfinished jobs wait for, in case one was
	// lost.
	Resume(ctx context.Context, app string) error
}

// Resume resumes an app's jobs of all kinds. A kind that fails does not stop the others.
func Resume(ctx context.Context, app string, kinds ...Kind) error {
	var faults []error
	for _, k := range kinds {
		faults = append(faults, k.Resume(ctx, app))
	}
	return errors.Join(faults...)
}

// Night is a nightly round.
type Night struct {
	// Date is the day on which the round began, by the engine's clock in UTC, such as
	// 2026-11-29. Jobs of the round are named by it.
	Date string
	// Full says that recomputes store every profile, and not only stale ones.
	Full bool
}

// Nightly is a Kind of which jobs are due each night.
type Nightly interface {
	Kind
	// Nightly starts what is due for an app. After an error the caller may call it again: it
	// starts only what has not started yet.
	Nightly(ctx context.Context, app string, night Night) error
}

// Core returns the runner itself, for Kind.
func (r *Runner) Core() *Runner { return r }

// New returns a copy of the runner with its defaults.
func New(r Runner) *Runner {
	r.CheckpointEvery = cmp.Or(r.CheckpointEvery, time.Second)
	r.StaleText = cmp.Or(r.StaleText, "rows are still stale")
	if r.Clock == nil {
		r.Clock = time.Now
	}
	return &r
}

// unpropagated is the time until every process has read the app's
// configuration; of a job of a move, until it has read where the app's rows are.
func (r *Runner) unpropagated(app config.App) time.Duration {
	changed := app.ChangedAt
	if r.DuringMoves {
		changed = app.PlacedAt()
	}
	return max(0, changed.Add(r.Propagation).Sub(r.Clock()))
}

// expiry is the expiry time of a job or shard that ends now.
func (r *Runner) expiry() time.Time { return r.Clock().Add(Kept) }

// Cancel ends an unfinished job. ErrEnded if it has ended, ErrNotFound if it
// does not exist.
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

// end ends a job and stores the totals of its shards. A job that has ended
// stays as it is. end returns the stored job. The reason may name users of the region that job names.
func (r *Runner) end(ctx context.Context, job Job, state State, reason string) (Job, error) {
	totals, err := r.Jobs.Totals(ctx, job.App, job.ID)
	if err != nil {
		return job, fmt.Errorf("end %s %s: %w", r.Name, job.ID, err)
	}
	ended, err := r.Jobs.Update(ctx, job.App, job.ID, func(j *Job) error {
		j.State, j.Error, j.Region = state, reason, job.Region
		j.Totals, j.FinishedAt, j.ExpiresAt = totals, r.Now(), r.expiry()
		return nil
	})
	if errors.Is(err, ErrEnded) {
		if ended, err = r.Jobs.Job(ctx, job.App, job.ID); err != nil {
			return job, fmt.Errorf("end %s %s: %w", r.Name, job.ID, err)
		}
		return ended, r.close(ctx, ended)
	}
	if err != nil {
		return job, fmt.Errorf("end %s %s: %w", r.Name, job.ID, err)
	}
	r.Log.LogAttrs(ctx, slog.LevelInfo, r.Name+" ended", slog.String("app", job.App), slog.String(r.Name, job.ID),
		slog.String("state", string(state)), slog.String("reason", reason), slog.Any("counts", totals.Counts))
	return ended, r.close(ctx, ended)
}

// close does what the work has to do after the end of its job.
func (r *Runner) close(ctx context.Context, job Job) error {
	closing, ok := r.Work.(Closing)
	if !ok {
		return nil
	}
	if err := closing.Close(ctx, job); err != nil {
		return fmt.Errorf("close %s %s: %w", r.Name, job.ID, err)
	}
	return nil
}

// Supersede ends an unfinished job because another job or configuration
// replaces it. It returns the stored job.
func (r *Runner) Supersede(ctx context.Context, job Job, reason string) (Job, error) {
	return r.end(ctx, job, Superseded, reason)
}

// finish marks the job Done or Failed once every shard has ended; otherwise, if
// the job bounds its tasks in flight, it enqueues the next shards. Each shard
// task calls finish when it ends and is retried until finish succeeds.
func (r *Runner) finish(ctx context.Context, app, id string) error {
	job, err := r.Jobs.Job(ctx, app, id)
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	if job.State != Running {
		return nil
	}
	// The last shard is read first: if no shard is open afterwards, then every
	// shard up to it has ended.
	continued, last, err := r.continued(ctx, job)
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	limit := max(1, job.Concurrency)
	if continued != nil {
		limit = inFlight(job) // addShards may have stored shards and not enqueued them
	}
	open, err := r.Jobs.ShardsIn(ctx, app, id, ShardOpen, limit)
	if err != nil {
		return r.endLost(ctx, job, fmt.Errorf("finish %s: %w", r.Name, err))
	}
	if len(open) > 0 {
		if job.Concurrency == 0 && continued == nil {
			return nil // every shard has its task
		}
		return r.enqueueShards(ctx, job, open)
	}
	failed, err := r.Jobs.ShardsIn(ctx, app, id, ShardFailed, 1)
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	if len(failed) > 0 {
		job.Region = failed[0].Region
		_, err = r.end(ctx, job, Failed, failed[0].Error)
		return err
	}
	if continued != nil {
		following, err := continued.Following(ctx, job, last)
		if err != nil {
			return fmt.Errorf("finish %s: %w", r.Name, err)
		}
		if len(following) > 0 {
			return r.addShards(ctx, job, last, following)
		}
	}
	_, err = r.end(ctx, job, Done, "")
	return err
}

// endLost ends a job of which a shard has lost its details, and returns any other error. The
// tables of a restored Bigtable may lack them.
func (r *Runner) endLost(ctx context.Context, job Job, err error) error {
	if errors.Is(err, errDetailsLost) {
		_, err = r.end(ctx, job, Failed, errorText(err))
	}
	return err
}

// inFlight returns how many open shards of a job may have tasks.
func inFlight(job Job) int {
	if job.Concurrency == 0 {
		return maxResumedShards
	}
	return job.Concurrency
}

// continued returns the work of a job and the job's last shard, or nil if no
// shards follow those over the users.
func (r *Runner) continued(ctx context.Context, job Job) (Continued, Shard, error) {
	continued, ok := r.Work.(Continued)
	if !ok {
		return nil, Shard{}, nil
	}
	last, err := r.Jobs.LastShard(ctx, job.App, job.ID)
	if errors.Is(err, ErrNotFound) && r.Users == nil {
		return continued, Shard{N: -1}, nil
	}
	return continued, last, err
}

// addShards stores the shards that follow the last one, and enqueues the first
// of them. Several deliveries of a task may do so at once: they store the same
// shards.
func (r *Runner) addShards(ctx context.Context, job Job, last Shard, following []Shard) error {
	for i, shard := range following {
		shard.N, shard.State, shard.Next = last.N+1+i, ShardOpen, shard.From
		if err := r.Jobs.CreateShard(ctx, job.App, job.ID, shard); err != nil && !errors.Is(err, ErrExists) {
			return fmt.Errorf("add shard %d of %s: %w", shard.N, job.ID, err)
		}
	}
	open, err := r.Jobs.ShardsIn(ctx, job.App, job.ID, ShardOpen, inFlight(job))
	if err != nil {
		return fmt.Errorf("finish %s: %w", r.Name, err)
	}
	return r.enqueueShards(ctx, job, open)
}

// Find returns a job with its current totals, or ErrNotFound.
func (r *Runner) Find(ctx context.Context, app, id string) (Job, error) {
	job, err := r.Jobs.Job(ctx, app, id)
	if err != nil || job.State.Ended() {
		return job, err
	}
	job.Totals, err = r.Jobs.Totals(ctx, app, id)
	return job, err
}

// List returns an app's latest jobs with their current totals, the newest
// first.
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
