package enrich

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// freeBytes of filters are not taken from the process's gate: the objects of
	// ordinary requests have less.
	freeBytes = 16 << 10
	// takenBytes of filters are taken from the gate at a time.
	takenBytes = 64 << 10
	// copies is how many bytes a process holds for each byte of a filter that it
	// resolves: the filter, the row that it decodes, and the message or the row of
	// the log that it encodes and sends.
	copies = 4
)

// Resolve returns the filters of every known object that the events name. It
// reads all objects that are not cached in one request. If their filters cost more
// than MaxCost, it stops reading and returns ErrTooMuch.
//
// It takes the bytes of the filters from the gate of the process, for the request
// that the context belongs to.
func (e *Enricher) Resolve(ctx context.Context, app string, events []event.Event) (bus.Objects, error) {
	var taken int
	return e.resolve(ctx, app, events, MaxCost, &taken)
}

// ResolveFirst is Resolve for as many of the events, in their order, as it finds
// within MaxCost: all of them if it can, and at least one. It returns their number.
func (e *Enricher) ResolveFirst(ctx context.Context, app string, events []event.Event) (bus.Objects, int, error) {
	var taken int
	for n := len(events); ; n = (n + 1) / 2 {
		limit := MaxCost
		if n <= 1 {
			limit = 0
		}
		objects, err := e.resolve(ctx, app, events[:n], limit, &taken)
		if !errors.Is(err, ErrTooMuch) {
			return objects, n, err
		}
	}
}

// resolution resolves the objects of some events once.
type resolution struct {
	*Enricher
	app      string
	now      time.Time
	settings map[string]catalog.Settings
	uses     map[store.ObjectRef]int // the number of events that name an object
	found    bus.Objects
	cost     int
	limit    int // of cost; 0: none
	bytes    int // of the filters found
	taken    *int
}

func (e *Enricher) resolve(ctx context.Context, app string, events []event.Event, limit int, taken *int) (bus.Objects, error) {
	r := resolution{
		Enricher: e, app: app, now: time.Now(), settings: map[string]catalog.Settings{}, uses: map[store.ObjectRef]int{},
		found: bus.Objects{}, limit: limit, taken: taken,
	}
	for i := range events {
		for _, id := range events[i].ObjectIDs {
			r.uses[store.ObjectRef{Index: events[i].Index, ID: id}]++
		}
	}
	var missing []store.ObjectRef
	for ref := range r.uses {
		settings, err := r.indexSettings(ctx, ref.Index)
		if err != nil {
			return nil, err
		}
		hit, ok := e.cache.Get(cacheKey{app, ref})
		if !ok || r.now.Sub(hit.readAt) >= cacheTTL || hit.version != settings.Version {
			missing = append(missing, ref)
			continue
		}
		if err := r.put(ctx, ref, hit.filters); err != nil {
			return nil, err
		}
	}
	if err := r.read(ctx, missing); err != nil {
		return nil, err
	}
	return r.found, nil
}

func (r *resolution) indexSettings(ctx context.Context, index string) (catalog.Settings, error) {
	if s, ok := r.settings[index]; ok {
		return s, nil
	}
	s, err := r.Enricher.settings.IndexSettings(ctx, r.app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return s, fmt.Errorf("read settings of index %s/%s: %w", r.app, index, err)
	}
	r.settings[index] = s
	return s, nil
}

// read resolves objects that are not cached.
func (r *resolution) read(ctx context.Context, refs []store.ObjectRef) error {
	if len(refs) == 0 {
		return nil
	}
	var stale []store.ObjectRef
	err := r.objects.ScanFilters(ctx, r.app, refs, func(ref store.ObjectRef, f store.ObjectFilters) error {
		if f.SettingsVersion != r.settings[ref.Index].Version {
			stale = append(stale, ref)
			return nil
		}
		return r.keep(ctx, ref, f.Filters)
	})
	if err != nil {
		return fmt.Errorf("resolve objects: %w", err)
	}
	if len(stale) == 0 {
		return nil
	}
	// The settings have changed since these filters were stored: derive them
	// from the records.
	err = r.objects.ScanRecords(ctx, r.app, stale, func(ref store.ObjectRef, record []byte) error {
		filters, err := catalog.Filters(record, r.settings[ref.Index])
		if err != nil {
			return fmt.Errorf("filters of object %q of %s/%s: %w", ref.ID, r.app, ref.Index, err)
		}
		return r.keep(ctx, ref, filters)
	})
	if err != nil {
		return fmt.Errorf("resolve objects under new settings: %w", err)
	}
	return nil
}

// keep adds an object that was read, and caches it.
func (r *resolution) keep(ctx context.Context, ref store.ObjectRef, filters []event.Filter) error {
	list := make([]bus.Filter, len(filters))
	for i, f := range filters {
		list[i] = bus.Filter{f.Facet, f.Value}
	}
	if len(list) <= cachedFilters {
		// The reference is part of the request's body, which the cache must not
		// retain.
		own := store.ObjectRef{Index: strings.Clone(ref.Index), ID: strings.Clone(ref.ID)}
		r.cache.Add(cacheKey{r.app, own}, cached{list, r.settings[ref.Index].Version, r.now})
	}
	return r.put(ctx, ref, list)
}

// put adds an object, unless the resolution then costs too much.
func (r *resolution) put(ctx context.Context, ref store.ObjectRef, filters []bus.Filter) error {
	one := costOf(filters)
	if r.cost += one * r.uses[ref]; r.limit > 0 && r.cost > r.limit {
		return ErrTooMuch
	}
	for r.bytes += one; r.bytes > freeBytes+*r.taken; *r.taken += takenBytes {
		if err := admission.Take(ctx, takenBytes*copies); err != nil {
			return err
		}
	}
	r.found.Put(ref.Index, ref.ID, filters)
	return nil
}
