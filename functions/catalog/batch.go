package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/admission"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	// groupBytes is the size of the stored records that a batch of partial updates
	// merges at a time.
	groupBytes = 4 << 20
	// recordWeight is how many bytes a batch takes from the process's gate for each
	// byte of a stored record: the row, its attributes while updates change them, and
	// the object that is written.
	recordWeight = 12
)

// batch is the actions of a request on an index.
type batch struct {
	handler
	app, index string
	actions    []catalog.Action
	settings   catalog.Settings
	dates      []string     // the attributes by which feeds order the objects
	cleared    bool         // the index, if an action clears it
	left       catalog.Left // of the objects written
}

// apply applies a batch to an index. If two batches change one object at the
// same time, the later write replaces the whole object.
//
// A batch that is refused changes nothing. If the stored records are too many to be
// in memory at a time, apply checks all of them first, group by group, and then
// reads them again to merge and write them.
//
// apply counts what of the stored objects gives no filters.
func (h handler) apply(ctx context.Context, app, index string,
	actions []catalog.Action) (left catalog.Left, err error) {
	settings, err := h.Config.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return left, fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	dates, err := h.dates(ctx, app, index)
	if err != nil {
		return left, err
	}
	b := &batch{handler: h, app: app, index: index, actions: actions, settings: settings, dates: dates}
	ids := catalog.BuildsOn(actions)
	slices.Sort(ids)
	whole, err := b.applyAtOnce(ctx, ids)
	if err != nil || whole {
		return b.left, err
	}
	others := func(id string) bool { _, found := slices.BinarySearch(ids, id); return !found }
	if _, err = catalog.NewPlanOf(actions, others, nil, settings); err != nil {
		return left, err
	}
	if err := b.inGroups(ctx, ids, func(context.Context, catalog.Plan) error { return nil }); err != nil {
		return left, err
	}
	if err := b.inGroups(ctx, ids, b.write); err != nil {
		return left, err
	}
	plan, err := catalog.NewPlanOf(actions, others, nil, settings)
	if err != nil {
		return left, err
	}
	err = b.write(ctx, plan)
	return b.left, err
}

// dates returns the attributes by which feeds order the objects of an index.
func (h handler) dates(ctx context.Context, app, index string) ([]string, error) {
	a, err := h.CachedConfig.App(ctx, app)
	if err != nil {
		return nil, fmt.Errorf("read app %s: %w", app, err)
	}
	return a.Dates.Of(index), nil
}

// applyAtOnce applies the whole batch, if the stored records that it builds on may be
// in memory at a time.
func (b *batch) applyAtOnce(ctx context.Context, ids []string) (bool, error) {
	ctx, end := admission.Part(ctx)
	defer end()
	stored, unread, err := b.read(ctx, ids)
	if err != nil || len(unread) > 0 {
		return false, err
	}
	plan, err := catalog.NewPlan(b.actions, stored, b.settings)
	if err != nil {
		return false, err
	}
	return true, b.write(ctx, plan)
}

// inGroups plans the partial updates of some objects at a time.
func (b *batch) inGroups(ctx context.Context, ids []string, do func(context.Context, catalog.Plan) error) error {
	for len(ids) > 0 {
		var err error
		if ids, err = b.group(ctx, ids, do); err != nil {
			return err
		}
	}
	return nil
}

// group plans the partial updates of the first objects, and returns the other ones.
func (b *batch) group(ctx context.Context, ids []string,
	do func(context.Context, catalog.Plan) error) ([]string, error) {
	ctx, end := admission.Part(ctx)
	defer end()
	stored, unread, err := b.read(ctx, ids)
	if err != nil {
		return nil, err
	}
	of := func(id string) bool {
		_, named := slices.BinarySearch(ids, id)
		_, left := slices.BinarySearch(unread, id)
		return named && !left
	}
	plan, err := catalog.NewPlanOf(b.actions, of, stored, b.settings)
	if err == nil {
		err = do(ctx, plan)
	}
	return unread, err
}

// write executes a plan.
func (b *batch) write(ctx context.Context, plan catalog.Plan) error {
	if plan.Clear && !b.cleared {
		if err := b.Store.Catalog.ClearIndex(ctx, b.app, b.index, b.dates...); err != nil {
			return err
		}
		b.cleared = true
	}
	b.left.Add(plan.Left)
	put := make([]store.Object, len(plan.Put))
	for i, o := range plan.Put {
		put[i] = store.Object{ID: o.ID, Record: o.Record,
			Filters: store.ObjectFilters{SettingsVersion: b.settings.Version, Filters: o.Filters}}
	}
	if err := b.Store.Catalog.PutObjects(ctx, b.app, b.index, put, b.dates...); err != nil {
		return err
	}
	return b.Store.Catalog.DeleteObjects(ctx, b.app, b.index, plan.Remove, b.dates...)
}

// errEnough ends a read of records at groupBytes.
var errEnough = errors.New("the records of a group are read")

// read returns stored records by ID, as many as may be in memory at a time, and the
// IDs that it has not read. ids are sorted, and so are those. A record that does not
// exist is read once all others are.
func (b *batch) read(ctx context.Context, ids []string) (records map[string][]byte, unread []string, err error) {
	refs := make([]store.ObjectRef, len(ids))
	for i, id := range ids {
		refs[i] = store.ObjectRef{Index: b.index, ID: id}
	}
	bytes := 0
	records = make(map[string][]byte, len(ids))
	err = b.Store.Catalog.ScanRecords(ctx, b.app, refs, func(ref store.ObjectRef, record []byte) error {
		records[ref.ID] = record
		if bytes += len(record); bytes >= b.groupBytes && len(records) < len(ids) {
			return errEnough
		}
		return admission.Take(ctx, recordWeight*int64(len(record)))
	})
	if errors.Is(err, errEnough) {
		for _, id := range ids {
			if _, read := records[id]; !read {
				unread = append(unread, id)
			}
		}
		return records, unread, nil
	}
	return records, nil, err
}
