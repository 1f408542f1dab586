package process

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/recent"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
)

func init() { function.Register("Process", open) }

// Settings are the environment variables that the function reads.
type Settings struct {
	backend.Settings
	Bus       pubsub.Config
	Warehouse pubsub.WarehouseConfig
	Queue     taskqueue.Config
}

// Backends are the services that the function uses.
type Backends struct {
	backend.Base
	Bus       *pubsub.Bus
	Enricher  *enrich.Enricher
	Profiles  *profile.Engine
	Refused   *refused.Recorder
	Sampled   *recent.Recorder
	Warehouse *outbox.Outbox       // nil: none
	Uptime    func() time.Duration // of apply.Applier; nil but in tests
}

func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	messages := backend.Use(ctx, o, s.Bus, pubsub.Open)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	topics := backend.Use(ctx, o, s.Warehouse, pubsub.OpenWarehouse)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	refreshes := refresh.New(tasks, base.Now, base.Log)
	refreshes.Each(base.Metrics.Watch)
	profiles := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	profiles.SetLater(refreshes.Enqueue)
	profiles.Counters().Each(base.Metrics.Watch)
	profile.ResidentsOf(profiles).Each(base.Metrics.Watch)
	links := refused.NewLinks(base.Buffered(), base.Usage, base.Now, log)
	function.AtExit(links.Flush)
	profile.IdentitiesOf(profiles).SetRefused(links.Record)
	refusals := refused.New(base.Buffered(), base.Now, log)
	function.AtExit(refusals.Flush)
	recent := recent.New(base.Buffered(), profiles.StatesOf, base.Now, log)
	function.AtExit(recent.Flush)
	h := newHandler(Backends{Base: base, Bus: messages, Warehouse: outbox.Over(topics, profile.ResidentsOf(profiles), base.Now, log),
		Enricher: enrich.New(base.Store.Catalog, base.CachedConfig), Profiles: profiles, Refused: refusals, Sampled: recent})
	function.AtExit(h.messages.Flush)
	return h.router(), nil
}

// Validate checks the settings of the queue.
func (s Settings) Validate() error { return s.Queue.Validate() }
