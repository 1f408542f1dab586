package imports

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/cache"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// Which objects are looked for in other indexes: the first ones of the first indexes that do
// not hold them, in the first indexes of the app. All are one small read.
const (
	soughtObjects = 3
	soughtIndexes = 2
	soughtIn      = 20
	// indexesTTL is how long the indexes of an app are remembered: an import is many
	// requests.
	indexesTTL = time.Second
	// manyApps is of how many apps they are.
	manyApps = 1000
)

// indexes are those that held objects of an app at a time.
type indexes struct {
	names []string
	at    time.Time
}

// finder looks for objects in other indexes than those that events name.
type finder struct {
	store *store.Store
	apps  cache.Map[string, indexes]
}

// noteUnknown adds to an answer the objects of events that the catalog does not hold, and
// returns of how many events they are.
func noteUnknown(events []event.Event, objects bus.Objects, answer *api.ImportAnswer) (n int) {
	found := map[string]*api.UnknownObjects{}
	seen := map[store.ObjectRef]bool{} // that are listed
	var order []string
	for i := range events {
		e := &events[i]
		if enrich.UnknownObjects(e, objects) == 0 {
			continue
		}
		n++
		u := found[e.Index]
		if u == nil {
			u = &api.UnknownObjects{Index: e.Index, ObjectIDs: []string{}}
			found[e.Index], order = u, append(order, e.Index)
		}
		u.Events++
		for _, id := range e.ObjectIDs {
			_, known := objects[e.Index][id]
			ref := store.ObjectRef{Index: e.Index, ID: id}
			switch {
			case known || seen[ref]:
			case len(u.ObjectIDs) == api.MaxUnknownObjects:
				u.More = true
			default:
				seen[ref], u.ObjectIDs = true, append(u.ObjectIDs, id)
			}
		}
	}
	for _, index := range order {
		answer.AddCounts(api.ImportAnswer{UnknownObjects: []api.UnknownObjects{*found[index]}})
	}
	return n
}

// find looks for unknown objects in other indexes, of those that a key may read. It only logs
// a fault: the events are imported.
func (f *finder) find(ctx context.Context, app string, grant auth.Grant, now time.Time, log *slog.Logger,
	unknown []api.UnknownObjects) {
	unknown = unknown[:min(len(unknown), soughtIndexes)]
	others, err := f.indexes(ctx, app, now)
	var refs []store.ObjectRef
	for _, u := range unknown {
		for _, index := range others {
			if index == u.Index || grant.Index(index) != nil {
				continue
			}
			for _, id := range u.ObjectIDs[:min(len(u.ObjectIDs), soughtObjects)] {
				refs = append(refs, store.ObjectRef{Index: index, ID: id})
			}
		}
	}
	held := map[store.ObjectRef]bool{}
	if err == nil && len(refs) > 0 {
		err = f.store.Catalog.ScanFilters(ctx, app, refs, func(ref store.ObjectRef, _ store.ObjectFilters) error {
			held[ref] = true
			return nil
		})
	}
	for i := range unknown {
		u := &unknown[i]
		at := slices.IndexFunc(refs, func(ref store.ObjectRef) bool {
			return held[ref] && ref.Index != u.Index && slices.Contains(u.ObjectIDs, ref.ID)
		})
		if at >= 0 {
			u.Elsewhere = &api.ObjectPlace{ObjectID: refs[at].ID, Index: refs[at].Index}
		}
	}
	if err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "unknown objects are not looked for in other indexes", slog.String("app", app),
			slog.Any("error", err))
	}
}

// indexes returns the first indexes of an app that hold objects.
func (f *finder) indexes(ctx context.Context, app string, now time.Time) ([]string, error) {
	if kept, ok := f.apps.Get(app); ok && now.Sub(kept.at).Abs() < indexesTTL {
		return kept.names, nil
	}
	names, err := f.store.Catalog.FirstCatalogIndexes(ctx, app, soughtIn)
	if err == nil {
		f.apps.Set(app, indexes{names, now})
	}
	return names, err
}
