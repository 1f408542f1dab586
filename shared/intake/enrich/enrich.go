// Package enrich resolves the objects of events: when ingest receives an event,
// it reads the filters of the event's objects from the catalog in Bigtable. It
// also makes the log rows of events.
//
// It caches the objects that it finds. It does not cache that an object is
// missing, so it finds a new object as soon as the app has saved it.
//
// A small request can name objects with very many filters. So a resolution counts
// what the filters cost as it reads them, and ends at MaxCost (see cost.go).
package enrich

import (
	"context"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// cacheTTL is how long a change of an object may go unnoticed.
	cacheTTL = 5 * time.Second
	// cacheSize is in objects. The cache leaves out an object with more than
	// cachedFilters filters. With ten filters of sixty bytes each the cache
	// takes tens of megabytes, in the worst case some hundreds.
	cacheSize     = 20_000
	cachedFilters = 100
)

// Catalog is the part of the store that an Enricher reads.
type Catalog interface {
	ScanFilters(ctx context.Context, app string, refs []store.ObjectRef,
		fn func(store.ObjectRef, store.ObjectFilters) error) error
	ScanRecords(ctx context.Context, app string, refs []store.ObjectRef, fn func(store.ObjectRef, []byte) error) error
}

// Enricher resolves objects. It is safe for concurrent use.
type Enricher struct {
	objects  Catalog
	settings settings
	kept     cache.Map[cacheKey, cached]
}

type cacheKey struct {
	app string
	ref store.ObjectRef
}

type cached struct {
	filters []bus.Filter
	version int64 // of the index settings
	readAt  time.Time
}

// settings reads the settings of an index.
type settings interface {
	IndexSettings(ctx context.Context, appID, index string) (catalog.Settings, error)
}

// New returns an Enricher for live events: it reads index settings from the
// cache.
func New(objects Catalog, c *config.Cached) *Enricher { return newEnricher(objects, c) }

// NewFresh returns an Enricher for a job that must see every change of the
// index settings made before it began.
func NewFresh(objects Catalog, s *config.Store) *Enricher { return newEnricher(objects, s) }

func newEnricher(objects Catalog, s settings) *Enricher {
	return &Enricher{objects: objects, settings: s, kept: cache.New[cacheKey, cached](cacheSize)}
}
