package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/store"
)

// apply applies a batch to an index. If two batches change one object at the
// same time, the later write replaces the whole object.
func (h handler) apply(ctx context.Context, app, index string, actions []catalog.Action) error {
	settings, err := h.Config.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	stored, err := h.records(ctx, app, index, catalog.BuildsOn(actions))
	if err != nil {
		return err
	}
	plan, err := catalog.NewPlan(actions, stored, settings)
	if err != nil {
		return err
	}
	if plan.Clear {
		if err := h.Store.ClearIndex(ctx, app, index); err != nil {
			return err
		}
	}
	put := make([]store.Object, len(plan.Put))
	for i, o := range plan.Put {
		put[i] = store.Object{ID: o.ID, Record: o.Record, Filters: store.ObjectFilters{SettingsVersion: settings.Version, Filters: o.Filters}}
	}
	if err := h.Store.PutObjects(ctx, app, index, put); err != nil {
		return err
	}
	return h.Store.DeleteObjects(ctx, app, index, plan.Remove)
}

// records returns the records of some objects by ID, without those that do not
// exist.
func (h handler) records(ctx context.Context, app, index string, ids []string) (map[string][]byte, error) {
	refs := make([]store.ObjectRef, len(ids))
	for i, id := range ids {
		refs[i] = store.ObjectRef{Index: index, ID: id}
	}
	found, err := h.Store.ReadRecords(ctx, app, refs)
	if err != nil {
		return nil, err
	}
	records := make(map[string][]byte, len(found))
	for ref, record := range found {
		records[ref.ID] = record
	}
	return records, nil
}
