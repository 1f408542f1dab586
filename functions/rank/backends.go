package rank

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config/kmscipher"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/backend/jobrunner"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/daterows"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/serve/page"
	"github.com/affinityengine/affinity/shared/serve/ranker"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Rank", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth    auth.Environment
	Parents kmscipher.Config
	Queue   taskqueue.Config
	Jobs    job.Settings
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth     *auth.Authenticator
	Profiles *profile.Engine
	Orderer  *ranker.Orderer
	Pages    *page.Reader
	DateRows *daterows.Runner
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	parents := backend.Get(ctx, o, o.CachedConfig, s.Parents, kmscipher.WithParents)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	return Over(base, auth.New(parents, s.Auth, base.Usage.Key), profiles, tasks, s.Jobs), nil
}

// Over returns the function over services that other functions of the process may use too.
func Over(base backend.Base, who *auth.Authenticator, profiles *profile.Engine, tasks queue.Queue,
	settings job.Settings) http.Handler {
	function.AtExit(profile.ExposuresOf(profiles).Flush)
	orderer := ranker.New(base.Store, base.CachedConfig, profiles, base.Now, base.Log)
	return New(Backends{
		Base: base, Auth: who, Profiles: profiles, Orderer: orderer,
		Pages:    page.New(base.Store.Catalog, base.CachedConfig, orderer, base.Now, base.Log),
		DateRows: daterows.New(jobrunner.Open(base, tasks, settings, daterows.Collection), base.Store, base.Config),
	})
}

// Validate checks the settings of the queue and of jobs.
func (s Settings) Validate() error { return errors.Join(s.Queue.Validate(), s.Jobs.Validate()) }
