package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/functions/segments"
	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/backend/function"
	runners "github.com/affinityengine/affinity/shared/backend/jobs"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/intake/refused"
	"github.com/affinityengine/affinity/shared/intake/warehouse/outbox"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue/pubsub"
	"github.com/affinityengine/affinity/shared/queue/taskqueue"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// The packages of the other functions register theirs in this process too. The platform
// serves the one that it starts the process for.
func init() { function.Register("Console", open) }

// Settings are the environment variables that the function reads: those of the functions whose
// requests its pages make, and its own. Sessions refuse secured keys, so it decrypts no parent
// of one.
type Settings struct {
	backend.Settings
	Auth          auth.Environment
	Bus           pubsub.Config
	Warehouse     pubsub.WarehouseConfig
	Queue         taskqueue.Config
	Jobs          job.Settings
	DeletionSlack time.Duration `env:"DELETION_SLACK" envDefault:"3s"`
	Secret        Secret        `env:"CONSOLE_SECRET,required,notEmpty"`
	// URL is the public address of the API, for commands that pages show. An app with a host of
	// its own is shown that one.
	URL string `env:"CONSOLE_API_URL,required,notEmpty"`
}

// Validate checks the settings of the queue, of jobs, of deletions, and the address.
func (s Settings) Validate() error {
	var wrong error
	if u, err := url.Parse(s.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" {
		wrong = fmt.Errorf("CONSOLE_API_URL %q is not https://HOST", s.URL)
	}
	return errors.Join(profiles.Settings{Queue: s.Queue, DeletionSlack: s.DeletionSlack}.Validate(),
		s.Jobs.Validate(), wrong)
}

// open opens each service once, and makes all public functions over them.
func open(ctx context.Context, log *slog.Logger, s Settings) (http.Handler, error) {
	o := backend.Start(ctx, log, s.Settings)
	tasks := backend.Use(ctx, o, s.Queue, taskqueue.Open)
	messages := backend.Use(ctx, o, s.Bus, pubsub.Open)
	topics := backend.Use(ctx, o, s.Warehouse, pubsub.OpenWarehouse)
	if err := o.Err(); err != nil {
		return nil, err
	}
	base := o.Base
	engine := profile.New(base.Store, base.Config, base.CachedConfig, base.Now, base.Log)
	engine.SetSlack(s.DeletionSlack)
	who := auth.New(base.CachedConfig, s.Auth, base.Usage.Key)
	all := runners.Open(base, tasks, s.Jobs, engine, nil)
	links := refused.NewLinks(base.Buffered(), base.Usage, base.Now, log)
	function.AtExit(links.Flush)
	profile.IdentitiesOf(engine).SetRefused(links.Record)
	enricher := enrich.New(base.Store.Catalog, base.CachedConfig)
	refusals := refused.New(base.Buffered(), base.Now, log)
	function.AtExit(refusals.Flush)
	api := API{
		Ingest: ingest.New(ingest.Backends{Base: base, Auth: who, Bus: messages, Enricher: enricher, Refused: refusals}),
		Imports: imports.New(imports.Backends{Base: base, Auth: who, Queue: tasks, Enricher: enricher,
			Profiles: engine, Refused: refusals, Warehouse: outbox.Over(topics, profile.ResidentsOf(engine), base.Now, log)}),
		Profiles:   profiles.New(profiles.Backends{Base: base, Auth: who, Queue: tasks, Profiles: engine}),
		Rank:       rank.Over(base, who, engine, tasks, s.Jobs),
		Strategies: strategies.Over(base, who, engine, tasks, s.Jobs),
		Catalog:    catalog.New(catalog.Backends{Base: base, Auth: who, Queue: tasks}),
		Admin:      admin.New(admin.Backends{Base: base, Jobs: all, Auth: who, Profiles: engine}),
		Segments:   segments.New(segments.Backends{Base: base, Segmenting: all.Segmenting, Before: all.Before, Auth: who}),
	}
	return New(Options{Log: log, API: api.Routes(), Auth: who, Secret: s.Secret, Ended: base.Config, Now: base.Now,
		URL: s.URL, Hosts: s.Auth.Hosts}), nil
}
