package job

import (
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

// ErrFailed is in an error of Sweep or Verify that trying again would not mend: the
// shard fails at once. After any other the task comes again, as often as it may.
var ErrFailed = errors.New("cannot be done")

// Work is what the jobs of a runner do to the users of a shard. It is safe for
// concurrent use. Whatever a shard's task did may be done again, from the last
// checkpoint on and by several deliveries at a time.
type Work interface {
	// Obsolete says why a job must not go on under the app's present configuration;
	// "" if it may. Such a job is superseded.
	Obsolete(job Job, app config.App) string
	// Sweep does the work from shard.Next on, up to shard.To, until it is through or
	// the time is over by the engine's clock. At least one step is made. It calls
	// progress at checkpoints, in order; an error of progress ends it and is
	// returned.
	Sweep(ctx context.Context, job Job, app config.App, shard Shard, until time.Time, progress func(Progress) error) (Progress, error)
	// Verify counts what of a swept shard is not as it should be. If it is more than
	// 0 the shard is swept again from its beginning, up to some passes.
	Verify(ctx context.Context, job Job, app config.App, shard Shard) (int64, error)
}

// Progress is what a call of Sweep has done, from its beginning on.
type Progress struct {
	Next string // where what is left begins
	Done bool   // nothing is left

	// Visited to Faulty are as in Totals.
	Visited, Users, Events, Changed, Left, Faulty int64
	// Faults are the first keys of what is faulty and what is wrong with each, at
	// most MaxFaults.
	Faults []string
}
