// Package backend opens what the functions that work on the data share: Bigtable,
// the configuration and its cache. A function adds what else it needs in its own
// package, so that it links nothing that it does not use.
package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/config/configdb"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/telemetry"
)

// Settings are the variables that every function on the data reads.
type Settings struct {
	Store     store.Config
	Firestore FirestoreSettings
}

// FirestoreSettings name the database of the configuration and of the jobs.
type FirestoreSettings struct {
	Project  string `env:"FIRESTORE_PROJECT,required"`
	Database string `env:"FIRESTORE_DATABASE" envDefault:"(default)"`
}

// Base is what every function on the data works with.
type Base struct {
	Log     *slog.Logger
	Metrics *telemetry.Metrics
	Now     func() time.Time
	Store   *store.Store
	// Config is the current configuration. CachedConfig may be up to one TTL old.
	Config       config.Store
	CachedConfig *config.Cached
	// Propagation is how long a change of the configuration takes to reach every
	// function: a request may use what it read from a cache for as long as that
	// was cached.
	Propagation time.Duration
	// Firestore is the client of the configuration's database. It is nil in a local
	// stack that keeps the configuration in memory.
	Firestore *firestore.Client
}

// New returns a Base over a configuration that is cached for ttl.
func New(log *slog.Logger, now func() time.Time, s *store.Store, c config.Store, ttl time.Duration) Base {
	return Base{
		Log: log, Metrics: telemetry.NewMetrics(), Now: now, Store: s,
		Config: c, CachedConfig: config.NewCached(c, ttl), Propagation: 2 * ttl,
	}
}

// Open opens Bigtable and Firestore.
func Open(ctx context.Context, log *slog.Logger, s Settings) (Base, error) {
	client, err := firestore.NewClientWithDatabase(ctx, s.Firestore.Project, s.Firestore.Database)
	if err != nil {
		return Base{}, fmt.Errorf("open Firestore of %s: %w", s.Firestore.Project, err)
	}
	opened, err := store.Open(ctx, s.Store)
	if err != nil {
		return Base{}, errors.Join(err, client.Close())
	}
	b := New(log, time.Now, opened, configdb.New(client), config.TTL)
	b.Firestore = client
	return b, nil
}

// Close closes the clients that Open opened.
func (b Base) Close() error {
	return errors.Join(b.Store.Close(), b.Firestore.Close())
}
