package job

import (
	"context"
	"time"
)

// Jobs keeps jobs and their shards. It is safe for concurrent use. Apart from
// the error values of this package, its errors are faults of the backend or
// come from a change function.
type Jobs interface {
	// Create stores a new job. ErrExists if the app has a job of that id.
	Create(ctx context.Context, job Job) error
	// Job returns a job, or ErrNotFound.
	Job(ctx context.Context, app, id string) (Job, error)
	// List returns an app's jobs, the newest first, at most limit.
	List(ctx context.Context, app string, limit int) ([]Job, error)
	// Unfinished returns an app's jobs that have not ended, the newest first.
	Unfinished(ctx context.Context, app string) ([]Job, error)
	// Before counts the unfinished jobs of all apps in a queue whose first task was
	// due before a time.
	Before(ctx context.Context, queue string, due time.Time) (int, error)
	// Update applies change as a compare-and-set and reruns it on the current
	// job after a conflict. It returns the job after the change. If change
	// returns an error the job stays as it is and Update returns that error.
	// ErrEnded if the job has ended. The parameters cannot be changed.
	Update(ctx context.Context, app, id string, change func(*Job) error) (Job, error)

	// CreateShard stores a new shard of a stored job. ErrExists if the job has
	// a shard of that number.
	CreateShard(ctx context.Context, app, id string, shard Shard) error
	// Shard returns a shard, or ErrNotFound.
	Shard(ctx context.Context, app, id string, n int) (Shard, error)
	// LastShard returns the shard of the highest number, or ErrNotFound.
	LastShard(ctx context.Context, app, id string) (Shard, error)
	// ShardsIn returns shards of a state in the order of their numbers, at most
	// limit.
	ShardsIn(ctx context.Context, app, id string, state ShardState, limit int) ([]Shard, error)
	// UpdateShard changes a shard as Update changes a job.
	UpdateShard(ctx context.Context, app, id string, n int, change func(*Shard) error) (Shard, error)
	// Totals sums up a job's shards. Without shards the sums are zero.
	Totals(ctx context.Context, app, id string) (Totals, error)
	// Faults returns faults of a job's shards, at most limit, in the order of
	// the shards' numbers. If the job has more, the result may omit faults of
	// the first shards.
	Faults(ctx context.Context, app, id string, limit int) ([]string, error)

	// FaultyShards returns the shards of which Faults tells, at most limit, in any order.
	FaultyShards(ctx context.Context, app, id string, limit int) ([]Shard, error)

	// Forget deletes all jobs of an app with their shards. After an error some are
	// left.
	Forget(ctx context.Context, app string) error
}
