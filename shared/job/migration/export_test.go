package migration

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/job"
)

// What a task reads ahead, and what a shard tells of at most.
const (
	BatchRows = batchRows
	CheckRows = checkRows
	MaxFaulty = maxFaulty
	Lanes     = lanes
)

// Limiter is that of a task of a job that begins now.
func (m *Mover) Limiter(ctx context.Context, j job.Job, app config.App) (*rate.Limiter, error) {
	return (&sweep{work: m.work, job: j, app: app}).limiter(ctx)
}
