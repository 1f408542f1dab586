package imports

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func init() { function.Register("Imports", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Auth      auth.Environment
	Queue     taskqueue.Config
	Warehouse pubsub.WarehouseConfig
}

// Validate checks the settings of the queue.
func (s Settings) Validate() error { return s.Queue.Validate() }

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Auth      *auth.Authenticator
	Queue     queue.Queue
	Enricher  *enrich.Enricher
	Profiles  *profile.Engine
	Refused   *refused.Recorder
	Warehouse *outbox.Outbox // nil: none
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	topics := backend.Use(ctx, o, s.Warehouse, pubsub.OpenWarehouse)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	refusals := refused.New(base.Buffered(), base.Now, log)
	function.AtExit(refusals.Flush)
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	links := refused.NewLinks(base.Buffered(), base.Usage, base.Now, log)
	function.AtExit(links.Flush)
	profile.IdentitiesOf(profiles).SetRefused(links.Record)
	return New(Backends{
		Base: base, Auth: auth.New(base.CachedConfig, s.Auth, base.Usage.Key), Queue: tasks,
		Enricher: enrich.New(base.Store.Catalog, base.CachedConfig),
		Profiles: profiles, Refused: refusals,
		Warehouse: outbox.Over(topics, profile.ResidentsOf(profiles), base.Now, log),
	}), nil
}
