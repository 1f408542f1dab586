package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/backend/jobs"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Admin", open) }

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
	jobs.Jobs
	Auth     *auth.Authenticator
	Profiles *profile.Engine
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	all := jobs.Open(base, tasks, s.Jobs, profiles, nil)
	return New(Backends{Base: base, Jobs: all, Auth: auth.New(base.CachedConfig, s.Auth, base.Usage.Key),
		Profiles: profiles}), nil
}

// Validate checks the settings of the queue and of jobs.
func (s Settings) Validate() error { return errors.Join(s.Queue.Validate(), s.Jobs.Validate()) }
