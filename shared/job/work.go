package job

import (
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
)

// ErrFailed marks an error of Process or Verify that another attempt would not
// repair: the shard fails at once. After any other error the queue retries the
// task, up to Config.Attempts.
var ErrFailed = errors.New("cannot be done")

// Work defines what the jobs of a runner do to the users of a shard. It is safe
// for concurrent use. Its effects must be idempotent: a task may repeat
// everything since the last checkpoint, and several deliveries of a task may
// run at once.
type Work interface {
	// Obsolete returns why the job must not continue under the app's current
	// configuration, or "" if it may. The runner supersedes an obsolete job.
	Obsolete(job Job, app config.App) string
	// Process works from shard.Next up to shard.To. It stops at the end of the
	// range, or once the engine's clock has reached until, but always makes one
	// step. It calls progress at each point at which the runner may make a
	// checkpoint, in order. If progress returns an error, Process stops and
	// returns that error.
	Process(ctx context.Context, job Job, app config.App, shard Shard, until time.Time,
		progress func(Progress) error) (Progress, error)
	// Verify counts the stale users or rows of a processed shard, from shard.Next
	// up to shard.To. It stops at the end of the range, or once the engine's clock
	// has reached until, but always makes one step. If it finds any up to the end,
	// the runner processes the shard again from its beginning, in at most maxPasses
	// further passes.
	Verify(ctx context.Context, job Job, app config.App, shard Shard, until time.Time) (Verified, error)
}

// Plain is embedded by a Work whose jobs never become obsolete and leave nothing stale, or
// that defines only one of the two methods itself.
type Plain struct{}

// Obsolete lets every job continue.
func (Plain) Obsolete(Job, config.App) string { return "" }

// Verify finds nothing.
func (Plain) Verify(context.Context, Job, config.App, Shard, time.Time) (Verified, error) {
	return Verified{}, nil
}

// Verified describes what one call of Verify has found. The zero value means that the end
// of the range is reached and nothing is stale.
type Verified struct {
	Next  string        // where the next call continues, in a format of the Work; "" at the end
	Pause time.Duration // before the next call
	Stale int64         // in this call
}

// Progress describes the work that one call of Process has done so far.
type Progress struct {
	Next string // where the next call continues
	Done bool   // the end of the range is reached
	// Counts count what this call has done. The runner does not keep the map.
	Counts Counts
	// Faults lists the first faulty keys with the fault of each, at most
	// MaxFaults.
	Faults []string
	// Result is what the work has found on the whole range, at most MaxResult
	// bytes. It counts if Done.
	Result string
}

// MaxResult is the maximum size of a result in bytes. A shard is one document,
// which may have 1 MiB.
const MaxResult = 500_000

// Continued is a Work whose jobs have more to do once every shard over the users
// is done, such as to merge what the shards have written, or have nothing to do with
// users: then the runner has no Users.
type Continued interface {
	Work
	// Following returns the shards that follow the last one of a job, all of
	// whose shards are done; none if the job has nothing left to do. They get
	// the numbers after last, which has the number -1 if the job has no shards yet.
	// Each names its Part. Following returns the same shards for the same last shard, and
	// the rest of them for each shard among them: a process may die after it
	// has stored some.
	Following(ctx context.Context, job Job, last Shard) ([]Shard, error)
}

// Preparing is a Work that has something to do once the shards of a job are stored,
// before the job runs. If the job has no Concurrency, tasks may run at the same time.
type Preparing interface {
	Work
	// Prepare is called with a function that returns the first users of some shards,
	// spread evenly over all, beginning with "". After an error, or if the process died,
	// the task is retried and Prepare is called again.
	Prepare(ctx context.Context, job Job, app config.App, starts func(context.Context) ([]string, error)) error
}

// Closing is a Work that has something to do once its job has ended, in any way. It
// may then delete the job and its shards.
type Closing interface {
	Work
	// Close is called with the job after its end. After an error, or if the process
	// died, the task is retried and Close is called again.
	Close(ctx context.Context, job Job) error
}
