package imports

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Imports", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth  auth.Environment
	Queue taskqueue.Config
}

// Validate checks the settings of the queue.
func (s Settings) Validate() error { return s.Queue.Validate() }

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth     *auth.Authenticator
	Queue    queue.Queue
	Enricher *enrich.Enricher
	Profiles *profile.Engine
	Refused  *refused.Recorder
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	base, err := backend.Open(ctx, log, s.Settings)
	if err != nil {
		return nil, err
	}
	s.Queue.Where = base.RegionOf
	tasks, err := taskqueue.Open(ctx, s.Queue)
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	refusals := refused.New(base.Buffered(), base.Now, log)
	function.AtExit(refusals.Flush)
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	return New(Backends{
		Base: base, Auth: auth.New(base.CachedConfig, s.Auth).Note(base.Usage.Key), Queue: tasks, Enricher: enrich.New(base.Store, base.CachedConfig),
		Profiles: profiles, Refused: refusals,
	}), nil
}
