// Package backend opens what a deployed function needs, as its environment says:
// the one place that turns variables into clients. It keeps no data.
package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/caarlos0/env/v11"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/config/configdb"
	"github.com/affinityengine/affinity/shared/enrich"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/migration"
	"github.com/affinityengine/affinity/shared/job/recompute"
	"github.com/affinityengine/affinity/shared/job/reenrich"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// Backends is what functions are made of. A function uses the parts it needs;
// the local stack fills them all.
type Backends struct {
	Log     *slog.Logger
	Metrics *telemetry.Metrics
	Now     func() time.Time
	Store   *store.Store
	// Apps is the configuration itself, Config a cache of it.
	Apps     config.Store
	Config   *config.Cached
	Auth     *auth.Authenticator
	Bus      *bus.Bus
	Queue    queue.Queue
	Enricher *enrich.Enricher
	Profiles *profile.Engine
	// Jobs gives the jobs of a collection.
	Jobs      func(collection string) job.Jobs
	Recompute *recompute.Runner
	Moves     *migration.Mover
	Reenrich  *reenrich.Runner

	// Hosts are the customers' own.
	Hosts auth.Hosts
	// ConfigTTL is how long Config keeps what it read. Zero: config.TTL.
	ConfigTTL time.Duration
	// RecomputeConfig says how work over all users is cut up.
	RecomputeConfig job.Config
}

// FirestoreConfig names the database of the configuration.
type FirestoreConfig struct {
	Project  string `env:"FIRESTORE_PROJECT,required"`
	Database string `env:"FIRESTORE_DATABASE" envDefault:"(default)"`
}

// Need says which parts a function uses beside configuration and Bigtable.
type Need struct{ Bus, Queue bool }

// Function is a function that opens its backends at its first request.
func Function(need Need, handler func(*Backends) http.Handler) http.Handler {
	log := telemetry.Default()
	return httpapi.NewLazy(log, func(ctx context.Context) (http.Handler, error) {
		b, err := open(ctx, need, log)
		if err != nil {
			return nil, err
		}
		return handler(b), nil
	})
}

// settings are what a function's environment says. Parts without a use are nil,
// and their variables are not read.
type settings struct {
	Store     store.Config
	Firestore FirestoreConfig
	Recompute job.Config
	Hosts     auth.Hosts `env:"CUSTOMER_HOSTS"`
	Bus       *bus.Config
	Queue     *queue.Config
}

func (n Need) settings() *settings {
	var cfg settings
	if n.Bus {
		cfg.Bus = new(bus.Config)
	}
	if n.Queue {
		cfg.Queue = new(queue.Config)
	}
	return &cfg
}

func open(ctx context.Context, need Need, log *slog.Logger) (*Backends, error) {
	cfg := need.settings()
	if err := errors.Join(env.Parse(cfg), cfg.Recompute.Validate()); err != nil {
		return nil, err
	}
	b := &Backends{Log: log, Now: time.Now, RecomputeConfig: cfg.Recompute, Hosts: cfg.Hosts}
	client, err := firestore.NewClientWithDatabase(ctx, cfg.Firestore.Project, cfg.Firestore.Database)
	if err != nil {
		return nil, fmt.Errorf("open Firestore of %s: %w", cfg.Firestore.Project, err)
	}
	b.Apps = configdb.New(client)
	b.Jobs = func(collection string) job.Jobs { return job.NewFirestore(client, collection) }
	if b.Store, err = store.Open(ctx, cfg.Store); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if need.Bus {
		if b.Bus, err = bus.Open(ctx, *cfg.Bus); err != nil {
			return nil, errors.Join(err, client.Close(), b.Store.Close())
		}
	}
	if need.Queue {
		if b.Queue, err = queue.Open(ctx, *cfg.Queue); err != nil {
			return nil, errors.Join(err, client.Close(), b.Store.Close())
		}
	}
	return b, b.Assemble()
}

// Assemble makes the parts that are made of other parts.
func (b *Backends) Assemble() error {
	b.Metrics = telemetry.NewMetrics()
	ttl := cmp.Or(b.ConfigTTL, config.TTL)
	b.Config = config.NewCached(b.Apps, ttl)
	b.Auth = auth.New(b.Config, b.Hosts)
	b.Profiles = profile.New(b.Store, b.Apps, b.Config, b.Now, b.Log)
	b.Profiles.Counters().Each(b.Metrics.Watch)
	b.Recompute = recompute.New(job.Runner{
		Config: b.RecomputeConfig, Jobs: b.Jobs(recompute.Collection), Apps: b.Apps, Queue: b.Queue, Users: b.Store,
		Settle: 2 * ttl, Now: b.Now, Log: b.Log,
	}, b.Profiles)
	b.Moves = migration.New(job.Runner{
		Config: b.RecomputeConfig, Jobs: b.Jobs(migration.Collection), Apps: b.Apps, Queue: b.Queue, Users: b.Store,
		Settle: 2 * ttl, Now: b.Now, Log: b.Log,
	}, b.Apps, b.Store)
	fresh, err := enrich.NewFresh(b.Store, b.Apps)
	if err != nil {
		return err
	}
	b.Reenrich = reenrich.New(job.Runner{
		Config: b.RecomputeConfig, Jobs: b.Jobs(reenrich.Collection), Apps: b.Apps, Queue: b.Queue, Users: b.Store,
		Settle: 2 * ttl, Now: b.Now, Log: b.Log,
	}, reenrich.Work{Store: b.Store, Catalog: fresh, Bus: b.Bus, Apps: b.Apps, Now: b.Now, Log: b.Log})
	b.Enricher, err = enrich.New(b.Store, b.Config)
	return err
}
