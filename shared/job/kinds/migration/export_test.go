package migration

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// The bounds of read-ahead and of a shard.
const (
	BatchRows    = batchRows
	CheckRows    = checkRows
	MaxDifferent = maxDifferent
	Concurrency  = concurrency
)

// Limiter returns the limiter of a task of a job.
func (m *Migrator) Limiter(ctx context.Context, j job.Job, app config.App) (*rate.Limiter, error) {
	return (&pass{work: m.work, job: j, params: job.ParamsOf[Params](j), app: app}).limiter(ctx)
}

// SetHeld sets how many values of a user a verification holds at a time.
func (m *Migrator) SetHeld(values int) { m.work.held.Values = values }

// DiffProfiles describes how two profiles differ.
var DiffProfiles = diffProfiles
