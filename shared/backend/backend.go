// Package backend opens what the functions that work on the data share: Bigtable,
// the configuration and its cache. A function adds what else it needs in its own
// package, so that it links nothing that it does not use.
package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"go.opentelemetry.io/otel"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/deadline"
	"github.com/affinityengine/affinity/shared/profile/location"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/telemetry"
	"github.com/affinityengine/affinity/shared/telemetry/export"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Settings are the variables that every function on the data reads.
type Settings struct {
	Store     store.Config
	Firestore FirestoreSettings
	Regions   RegionSettings
}

// RegionSettings say which regions the deployment has, and in which one the process runs.
type RegionSettings struct {
	All config.Regions `env:"REGIONS"`
	Own string         `env:"REGION"`
}

// FirestoreSettings name the database of the configuration and of the jobs, and that of keys,
// which hardly any function may write.
type FirestoreSettings struct {
	Project  string `env:"FIRESTORE_PROJECT,required"`
	Database string `env:"FIRESTORE_DATABASE" envDefault:"(default)"`
	Keys     string `env:"FIRESTORE_KEYS_DATABASE,required"`
}

// Base is what every function on the data works with.
type Base struct {
	Log     *slog.Logger
	Metrics *telemetry.Metrics
	Now     func() time.Time
	Store   *store.Store
	// Config is the current configuration. CachedConfig may be up to one TTL old.
	Config       *config.Store
	CachedConfig *config.Cached
	// Usage counts what apps use.
	Usage *usage.Counter
	// Propagation is how long a change of the configuration takes to reach every
	// function: a request may use what it read from a cache for as long as that
	// was cached.
	Propagation time.Duration
	// Life bounds the time of a request or a task further than its function does, if it is
	// not 0. Only local stacks set it.
	Life time.Duration
	// Limits counts what apps ask of this process.
	Limits *limit.Limiter
	// Documents hold the configuration and the jobs, Keys the keys.
	Documents, Keys documents.Store
	closeDocuments  func() error
	// Locations finds the regions of users, for what the process publishes and writes behind its requests.
	Locations *location.Finder
	// Regions are those of the deployment; none if it has one Bigtable instance.
	Regions config.Regions
}

// New returns a Base over a configuration that is cached for ttl.
func New(log *slog.Logger, now func() time.Time, s *store.Store, c *config.Store, ttl time.Duration) Base {
	return newBase(log, now, s, c, config.NewCached(c, ttl), ttl)
}

func newBase(log *slog.Logger, now func() time.Time, s *store.Store, c *config.Store, cached *config.Cached,
	ttl time.Duration) Base {
	var locations *location.Finder
	if s != nil {
		locations = location.New(s.In, s.Home(), now)
	}
	return Base{
		Log: log, Metrics: telemetry.NewMetrics(otel.GetMeterProvider()), Now: now, Store: s,
		Usage:  usage.NewCounter(Buffered{s, cached, locations}, now, log),
		Config: c, CachedConfig: cached, Propagation: 2 * ttl, Locations: locations,
	}.WithLimits(limit.Defaults)
}

// Buffered returns the tables that the process writes behind its requests.
func (b Base) Buffered() Buffered { return Buffered{b.Store, b.CachedConfig, b.Locations} }

// startExporters starts what exports the process's spans and metrics, once: a function
// whose backends do not open tries again.
var startExporters = sync.OnceValue(func() error {
	exporters, err := export.Start(context.Background(), telemetry.Default())
	if err == nil {
		function.AtExit(exporters.Shutdown)
	}
	return err
})

// Open opens Bigtable and Firestore, and before them what exports spans and metrics.
func Open(ctx context.Context, log *slog.Logger, s Settings) (Base, error) {
	if err := startExporters(); err != nil {
		return Base{}, err
	}
	client, err := firestore.NewClientWithDatabase(ctx, s.Firestore.Project, s.Firestore.Database, export.ClientOptions()...)
	if err != nil {
		return Base{}, fmt.Errorf("open Firestore of %s: %w", s.Firestore.Project, err)
	}
	keysClient, err := firestore.NewClientWithDatabase(ctx, s.Firestore.Project, s.Firestore.Keys, export.ClientOptions()...)
	if err != nil {
		err = fmt.Errorf("open the keys in Firestore of %s: %w", s.Firestore.Project, err)
		return Base{}, errors.Join(err, client.Close())
	}
	kept, keys := documentdb.New(client), documentdb.New(keysClient)
	closeBoth := func() error { return errors.Join(client.Close(), keysClient.Close()) }
	b, err := openStores(ctx, log, s, config.New(kept, keys, log))
	if err != nil {
		return Base{}, errors.Join(err, closeBoth())
	}
	b.Store.LogTo(log)
	b.Documents, b.Keys, b.closeDocuments = kept, keys, closeBoth
	b.CountUsage()
	function.AtExit(func(context.Context) error { b.Usage.Close(); return nil })
	return b, nil
}

// WithLimits returns a Base whose apps have other limits where they have none of
// their own.
func (b Base) WithLimits(defaults limit.Numbers) Base {
	var board limit.Board
	if b.Store != nil {
		board = b.Buffered()
	}
	b.Limits = limit.New(b.Now, defaults, board, func(app string, err error) {
		b.Log.Warn("limits are not shared with other instances", slog.String("app", app), slog.Any("error", err))
	})
	return b
}

// Router returns a Router of a function whose requests have a timeout. It answers 503
// where a backend's fault may be gone at the next attempt.
func (b Base) Router(timeout time.Duration) *httpapi.Router {
	rt := httpapi.NewRouter(b.Log)
	rt.Transient, rt.Limits, rt.Life = transient, b.Limits, min(timeout, b.Longest())
	return rt
}

// transient reports whether a gRPC error, as all backends return it, may be gone
// at the next attempt.
func transient(err error) bool {
	var grpc interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &grpc) {
		return false
	}
	switch grpc.GRPCStatus().Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.ResourceExhausted, codes.Canceled:
		return true
	}
	return false
}

// AuditLog returns what auditlog.New takes, for a Recorder of the changes that the function makes.
func (b Base) AuditLog() (log store.AuditLog, now func() time.Time, lines *slog.Logger,
	trace func(context.Context) string) {
	return b.Store.AuditLog, b.Now, b.Log, telemetry.TraceID
}

// Longest returns how long a request or a task may use Bigtable.
func (b Base) Longest() time.Duration {
	if b.Life > 0 {
		return b.Life
	}
	return deadline.Longest
}

// Settle returns how long a process may act on what it has read: on a cached configuration or location, and then in
// a request or task. The rest is for clocks.
func (b Base) Settle() time.Duration { return b.Propagation + b.Longest() + 10*time.Second }

// CountUsage makes the store count, and starts to store the counts.
func (b Base) CountUsage() {
	b.Store.CountIn(b.Usage)
	b.Usage.Start()
}

// Close closes the clients that Open opened.
func (b Base) Close() error {
	b.Usage.Close()
	return errors.Join(b.Store.Close(), b.closeDocuments())
}
