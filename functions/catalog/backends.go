package catalog

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Catalog", open) }

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
	Auth  *auth.Authenticator
	Queue queue.Queue
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
	return New(Backends{Base: base, Auth: auth.New(base.CachedConfig, s.Auth).Note(base.Usage.Key), Queue: tasks}), nil
}
