package worker

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/backend/jobrunner"
	"github.com/affinityengine/affinity/shared/backend/jobs"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
)

func init() { function.Register("Worker", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Bus       pubsub.Config
	Warehouse pubsub.WarehouseConfig
	Queue     taskqueue.Config
	Jobs      job.Settings
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	jobs.Jobs
	Deletions *deletion.Runner
	Queue     queue.Queue
	Profiles  *profile.Engine
	Warehouse *outbox.Outbox // nil: none
}

// kinds returns the runners of all kinds of jobs.
func (b Backends) kinds() []job.Kind { return append(b.Kinds(), b.Deletions) }

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	messages := backend.Use(ctx, o, s.Bus, pubsub.Open)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	topics := backend.Use(ctx, o, s.Warehouse, pubsub.OpenWarehouse)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	profiles.Counters().Each(base.Metrics.Watch)
	all := jobs.Open(base, tasks, s.Jobs, profiles, messages)
	rows := outbox.Over(topics, profile.ResidentsOf(profiles), base.Now, log)
	deletions := deletion.New(jobrunner.Open(base, tasks, s.Jobs, deletion.Collection), base.Config, base.Store.Rows,
		outbox.Forgetting{Documents: config.Documents{Store: base.Documents, Keys: base.Keys}, Outbox: rows}, deletion.Late)
	return New(Backends{Base: base, Jobs: all, Deletions: deletions, Queue: tasks, Profiles: profiles,
		Warehouse: rows}), nil
}

// Validate checks the settings of the queue and of jobs.
func (s Settings) Validate() error { return errors.Join(s.Queue.Validate(), s.Jobs.Validate()) }
