// Package enrich resolves the objects of events: when ingest receives an event,
// it reads the filters of the event's objects from the catalog in Bigtable. It
// also makes the log rows of events.
//
// It caches the objects that it finds. It does not cache that an object is
// missing, so it finds a new object as soon as the app has saved it.
package enrich

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
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
	ReadFilters(ctx context.Context, app string, refs []store.ObjectRef) (map[store.ObjectRef]store.ObjectFilters, error)
	ReadRecords(ctx context.Context, app string, refs []store.ObjectRef) (map[store.ObjectRef][]byte, error)
}

// Enricher resolves objects. It is safe for concurrent use.
type Enricher struct {
	objects  Catalog
	settings settings
	cache    *lru.Cache[cacheKey, cached]
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
func New(objects Catalog, c *config.Cached) (*Enricher, error) { return newEnricher(objects, c) }

// NewFresh returns an Enricher for a job that must see every change of the
// index settings made before it began.
func NewFresh(objects Catalog, s config.Store) (*Enricher, error) { return newEnricher(objects, s) }

func newEnricher(objects Catalog, s settings) (*Enricher, error) {
	cache, err := lru.New[cacheKey, cached](cacheSize)
	if err != nil {
		return nil, fmt.Errorf("make object cache: %w", err)
	}
	return &Enricher{objects: objects, settings: s, cache: cache}, nil
}

// Resolve returns the filters of every known object that the events name. It
// reads all objects that are not cached in one batch.
func (e *Enricher) Resolve(ctx context.Context, app string, events []event.Event) (bus.Objects, error) {
	found := bus.Objects{}
	seen := map[store.ObjectRef]bool{}
	versions := map[string]catalog.Settings{}
	var missing []store.ObjectRef
	now := time.Now()
	for i := range events {
		for _, id := range events[i].ObjectIDs {
			ref := store.ObjectRef{Index: events[i].Index, ID: id}
			if seen[ref] {
				continue
			}
			seen[ref] = true
			settings, err := e.indexSettings(ctx, app, ref.Index, versions)
			if err != nil {
				return nil, err
			}
			hit, ok := e.cache.Get(cacheKey{app, ref})
			if !ok || now.Sub(hit.readAt) >= cacheTTL || hit.version != settings.Version {
				missing = append(missing, ref)
				continue
			}
			found.Put(ref.Index, ref.ID, hit.filters)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	return found, e.read(ctx, app, missing, versions, now, found)
}

func (e *Enricher) indexSettings(ctx context.Context, app, index string,
	known map[string]catalog.Settings) (catalog.Settings, error) {
	if s, ok := known[index]; ok {
		return s, nil
	}
	s, err := e.settings.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return s, fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	known[index] = s
	return s, nil
}

func (e *Enricher) read(ctx context.Context, app string, refs []store.ObjectRef,
	settings map[string]catalog.Settings, now time.Time, into bus.Objects) error {
	stored, err := e.objects.ReadFilters(ctx, app, refs)
	if err != nil {
		return fmt.Errorf("resolve objects: %w", err)
	}
	var stale []store.ObjectRef
	for ref, f := range stored {
		if f.SettingsVersion != settings[ref.Index].Version {
			stale = append(stale, ref)
			continue
		}
		e.keep(app, ref, f.Filters, f.SettingsVersion, now, into)
	}
	// The settings have changed since these filters were stored: derive them
	// from the records.
	records, err := e.objects.ReadRecords(ctx, app, stale)
	if err != nil {
		return fmt.Errorf("resolve objects under new settings: %w", err)
	}
	for ref, record := range records {
		filters, err := catalog.Filters(record, settings[ref.Index])
		if err != nil {
			return fmt.Errorf("filters of object %q of %s/%s: %w", ref.ID, app, ref.Index, err)
		}
		e.keep(app, ref, filters, settings[ref.Index].Version, now, into)
	}
	return nil
}

func (e *Enricher) keep(app string, ref store.ObjectRef, filters []event.Filter, version int64,
	now time.Time, into bus.Objects) {
	list := make([]bus.Filter, len(filters))
	for i, f := range filters {
		list[i] = bus.Filter{f.Facet, f.Value}
	}
	into.Put(ref.Index, ref.ID, list)
	if len(list) > cachedFilters {
		return
	}
	// The reference is part of the request's body, which the cache must not
	// retain.
	ref = store.ObjectRef{Index: strings.Clone(ref.Index), ID: strings.Clone(ref.ID)}
	e.cache.Add(cacheKey{app, ref}, cached{list, version, now})
}
