package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// apply carries out a batch in its order. Actions on one object are merged
// before anything is written, since rows of one bulk write have no order.
func (h handlers) apply(ctx context.Context, app, index string, actions []catalog.Action) error {
	settings, err := h.Apps.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	for len(actions) > 0 {
		n := 0
		for n < len(actions) && actions[n].Kind != catalog.Clear {
			n++
		}
		if err := h.applyObjects(ctx, app, index, actions[:n], settings); err != nil {
			return err
		}
		actions = actions[n:]
		if len(actions) > 0 {
			if err := h.Store.ClearIndex(ctx, app, index); err != nil {
				return err
			}
			actions = actions[1:]
		}
	}
	return nil
}

// applyObjects carries out actions on single objects. All of it is worked out
// before the first write, so that a refusal leaves nothing half done.
func (h handlers) applyObjects(ctx context.Context, app, index string, actions []catalog.Action, settings catalog.Settings) error {
	records, err := h.present(ctx, app, index, actions)
	if err != nil {
		return err
	}
	touched := map[string]bool{}
	for _, a := range actions {
		old := records[a.ObjectID]
		switch a.Kind {
		case catalog.DeleteObject:
			records[a.ObjectID] = nil
		case catalog.PartialUpdateObject, catalog.PartialUpdateObjectNoCreate:
			if old == nil && a.Kind == catalog.PartialUpdateObjectNoCreate {
				continue
			}
			if records[a.ObjectID], err = catalog.Merge(old, a.Record); err != nil {
				return err
			}
		default:
			records[a.ObjectID] = a.Record
		}
		touched[a.ObjectID] = true
	}
	var put []store.Object
	var remove []string
	for id := range touched {
		if records[id] == nil {
			remove = append(remove, id)
			continue
		}
		filters, err := catalog.Filters(records[id], settings)
		if err != nil {
			return fmt.Errorf("filters of object %q: %w", id, err)
		}
		put = append(put, store.Object{ID: id, Record: records[id],
			Filters: store.ObjectFilters{SettingsVersion: settings.Version, Filters: filters}})
	}
	if err := h.Store.PutObjects(ctx, app, index, put); err != nil {
		return err
	}
	return h.Store.DeleteObjects(ctx, app, index, remove)
}

// present reads the records that partial updates build on.
func (h handlers) present(ctx context.Context, app, index string, actions []catalog.Action) (map[string][]byte, error) {
	wanted := map[string]bool{}
	var refs []store.ObjectRef
	for _, a := range actions {
		partial := a.Kind == catalog.PartialUpdateObject || a.Kind == catalog.PartialUpdateObjectNoCreate
		if partial && !wanted[a.ObjectID] {
			wanted[a.ObjectID] = true
			refs = append(refs, store.ObjectRef{Index: index, ID: a.ObjectID})
		}
	}
	found, err := h.Store.ReadRecords(ctx, app, refs)
	if err != nil {
		return nil, err
	}
	records := make(map[string][]byte, len(actions))
	for ref, record := range found {
		records[ref.ID] = record
	}
	return records, nil
}
