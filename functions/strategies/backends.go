package strategies

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/backend/jobrunner"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Strategies", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth  auth.Environment
	Queue taskqueue.Config
	Jobs  job.Settings
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth      *auth.Authenticator
	Profiles  *profile.Engine
	Recompute *recompute.Runner
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	return Over(base, auth.New(base.CachedConfig, s.Auth, base.Usage.Key), profiles, tasks, s.Jobs), nil
}

// Over returns the function over services that other functions of the process may use too.
func Over(base backend.Base, who *auth.Authenticator, profiles *profile.Engine, tasks queue.Queue,
	settings job.Settings) http.Handler {
	runner := jobrunner.Open(base, tasks, settings, recompute.Collection)
	return New(Backends{Base: base, Auth: who, Profiles: profiles, Recompute: recompute.New(runner, profiles)})
}

// Validate checks the settings of the queue and of jobs.
func (s Settings) Validate() error { return errors.Join(s.Queue.Validate(), s.Jobs.Validate()) }
