package job

import (
	"context"
	"errors"
	"time"

	"github.com/affinityengine/affinity/shared/config"
)

// ErrFailed is in an error of Process or Verify that another attempt would not
// repair: the shard fails at once. After any other error the task is retried,
// up to Config.Attempts.
var ErrFailed = errors.New("cannot be done")

// Work is what the jobs of a runner do to the users of a shard. It is safe for
// concurrent use. Everything since the last checkpoint may be done again, and
// by several deliveries of a task at once.
type Work interface {
	// Obsolete returns why the job must not continue under the app's current
	// configuration, or "" if it may. An obsolete job is superseded.
	Obsolete(job Job, app config.App) string
	// Process works from shard.Next up to shard.To, until it is through or the
	// engine's clock passes until. It makes one step at least. It calls
	// progress at checkpoints, in order; an error of progress ends it and is
	// returned.
	Process(ctx context.Context, job Job, app config.App, shard Shard, until time.Time, progress func(Progress) error) (Progress, error)
	// Verify counts what of a processed shard is not as it should be. If it
	// finds anything the shard is processed again from its beginning, in at
	// most maxPasses further passes.
	Verify(ctx context.Context, job Job, app config.App, shard Shard) (int64, error)
}

// Progress is what one call of Process has done since it began.
type Progress struct {
	Next string // where the rest begins
	Done bool   // nothing is left
	Counts
	// Faults are the first keys that are faulty, and what is wrong with each,
	// at most MaxFaults.
	Faults []string
}
