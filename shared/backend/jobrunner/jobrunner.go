// Package jobrunner makes the runners of jobs from a function's backends. It is
// separate from package backend because few functions start or run jobs.
package jobrunner

import (
	"context"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/queue"
)

// Open returns a runner of the jobs in a collection. What their documents say of users is in
// Bigtable. The kind of job adds its name and its work.
func Open(b backend.Base, q queue.Queue, c job.Settings, collection job.Collection) job.Runner {
	return job.Runner{
		Collection: collection, Settings: c, Jobs: job.Detailed(job.In(b.Documents, collection), b.Store.Jobs,
			collection), Config: b.Config, Queue: q, Users: b.Store.Users,
		UsersIn:     func(region string) job.Users { return b.Store.In(region).Users },
		Propagation: b.Propagation, Now: b.Now, Log: b.Log,
	}
}

// Before returns what counts the unfinished jobs of all apps before a job in its queue. It
// counts those of every kind, and needs the code of none.
func Before(b backend.Base) func(ctx context.Context, j job.Job) (int, error) {
	stores := make([]job.Jobs, len(job.Queued))
	for i, name := range job.Queued {
		stores[i] = job.In(b.Documents, job.Collection{Name: name})
	}
	return func(ctx context.Context, j job.Job) (int, error) { return job.Before(ctx, j, stores...) }
}
