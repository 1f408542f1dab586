package enrich

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
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
	// MaxTaken is what Resolve and ResolveFirst take from the gate at most, unless one
	// event alone costs more than MaxCost.
	MaxTaken = MaxCost * copies
)

// Resolve returns the filters of every known object that the events name, and the versions of their
// numeric bands. It reads all objects that are not cached in one request. If they, or the filters that
// the events count, cost more than MaxCost, it returns ErrTooMuch.
//
// It takes the bytes of the filters from the gate of the process, and a turn if they
// are many, for the request that the context belongs to.
func (e *Enricher) Resolve(ctx context.Context, app string, events []event.Event) (bus.Resolution, error) {
	known, left, err := e.resolve(ctx, app, events, budget{limit: MaxCost, turns: true})
	if err == nil && left.fit(events, known.Objects) < len(events) {
		return bus.Resolution{}, ErrTooMuch
	}
	return known, err
}

// ResolveFirst is Resolve for as many of the events, in their order, as it finds
// within MaxCost: all of them if it can, and at least one. It returns their number.
func (e *Enricher) ResolveFirst(ctx context.Context, app string, events []event.Event) (bus.Resolution, int, error) {
	taken := 0
	for n := len(events); ; n = (n + 1) / 2 {
		left := budget{limit: MaxCost, taken: taken}
		if n <= 1 {
			left.limit = 0
		}
		known, left, err := e.resolve(ctx, app, events[:n], left)
		if !errors.Is(err, ErrTooMuch) {
			return known, left.fit(events[:n], known.Objects), err
		}
		taken = left.taken // a smaller attempt takes it over
	}
}

// budget is what the objects of some events may still cost, and what they take from
// the gate.
type budget struct {
	limit int  // of bytes; 0: none
	bytes int  // of the objects found
	cost  int  // of them in all events, without the bounds of an event
	taken int  // from the gate
	turns bool // many objects need a turn
}

// add counts an object that some of the events name.
func (b *budget) add(ctx context.Context, filters []bus.Filter, uses int) error {
	one := costOf(filters)
	b.cost += one * uses
	if b.bytes += one; b.limit > 0 && b.bytes > b.limit {
		return ErrTooMuch
	}
	if b.turns && b.bytes >= admission.Heavy {
		if err := admission.AwaitTurn(ctx, admission.TurnWait); err != nil {
			return err
		}
	}
	for ; b.bytes > freeBytes+b.taken; b.taken += takenBytes {
		if err := admission.Take(ctx, takenBytes*copies); err != nil {
			return err
		}
	}
	return nil
}

// fit returns how many of the events, in their order, cost at most MaxCost together.
func (b *budget) fit(events []event.Event, objects bus.Objects) int {
	if b.cost <= MaxCost { // as of nearly all requests
		return len(events)
	}
	n, _ := Fit(len(events), func(i int) *event.Event { return &events[i] }, objects)
	return n
}

// resolve resolves all events within a budget. It returns what is left of it.
func (e *Enricher) resolve(ctx context.Context, app string, events []event.Event,
	left budget) (bus.Resolution, budget, error) {
	// These maps stay on the stack: most requests find all of their objects cached.
	settings, uses := map[string]catalog.Settings{}, map[store.ObjectRef]int{}
	for i := range events {
		for _, id := range events[i].ObjectIDs {
			uses[store.ObjectRef{Index: events[i].Index, ID: id}]++
		}
	}
	now, found := time.Now(), bus.Resolution{Objects: bus.Objects{}}
	var missing []store.ObjectRef
	for ref, n := range uses {
		s, known := settings[ref.Index]
		if !known {
			var err error
			if s, err = e.indexSettings(ctx, app, ref.Index); err != nil {
				return bus.Resolution{}, left, err
			}
			settings[ref.Index] = s
			if s.BandsVersion > 0 {
				if found.Bands == nil {
					found.Bands = bus.Bands{}
				}
				found.Bands[ref.Index] = s.BandsVersion
			}
		}
		hit, ok := e.kept.Get(cacheKey{app, ref})
		if !ok || now.Sub(hit.readAt) >= cacheTTL || hit.version != s.Version {
			missing = append(missing, ref)
			continue
		}
		if err := left.add(ctx, hit.filters, n); err != nil {
			return bus.Resolution{}, left, err
		}
		found.Objects.Put(ref.Index, ref.ID, hit.filters)
	}
	if len(missing) == 0 {
		return found, left, nil
	}
	r := resolution{e, app, now, map[string]catalog.Settings{}, make(map[store.ObjectRef]int, len(missing)),
		found.Objects, left}
	for _, ref := range missing {
		r.settings[ref.Index], r.uses[ref] = settings[ref.Index], uses[ref]
	}
	if err := r.read(ctx, missing); err != nil {
		return bus.Resolution{}, r.left, err
	}
	return found, r.left, nil
}

func (e *Enricher) indexSettings(ctx context.Context, app, index string) (catalog.Settings, error) {
	s, err := e.settings.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return s, fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	return s, nil
}

// resolution reads objects that are not cached.
type resolution struct {
	*Enricher
	app      string
	now      time.Time
	settings map[string]catalog.Settings
	uses     map[store.ObjectRef]int // the number of events that name an object
	found    bus.Objects
	left     budget
}

func (r *resolution) read(ctx context.Context, refs []store.ObjectRef) error {
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
		r.kept.Set(cacheKey{r.app, own}, cached{list, r.settings[ref.Index].Version, r.now})
	}
	if err := r.left.add(ctx, list, r.uses[ref]); err != nil {
		return err
	}
	r.found.Put(ref.Index, ref.ID, list)
	return nil
}
