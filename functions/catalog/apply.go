package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/store"
)

// plan is what a batch comes to. Actions on one object are merged before
// anything is written: rows of one bulk write have no order, and a refusal must
// leave nothing half done.
type plan struct {
	clear   bool
	records map[string][]byte // by object id; nil: there is none
	touched map[string]bool
}

// apply carries out a batch in its order. Of two batches at once that change one
// object the later write stays, whole.
func (h handlers) apply(ctx context.Context, app, index string, actions []catalog.Action) error {
	settings, err := h.Config.IndexSettings(ctx, app, index)
	if err != nil && !errors.Is(err, config.ErrNotFound) {
		return fmt.Errorf("read settings of index %s/%s: %w", app, index, err)
	}
	records, err := h.present(ctx, app, index, actions)
	if err != nil {
		return err
	}
	p := plan{records: records, touched: map[string]bool{}}
	for i, a := range actions {
		if err := p.add(a); err != nil {
			return within(i, err)
		}
	}
	put, remove, err := p.writes(settings)
	if err != nil {
		return err
	}
	if p.clear {
		if err := h.Store.ClearIndex(ctx, app, index); err != nil {
			return err
		}
	}
	if err := h.Store.PutObjects(ctx, app, index, put); err != nil {
		return err
	}
	return h.Store.DeleteObjects(ctx, app, index, remove)
}

func (p *plan) add(a catalog.Action) (err error) {
	switch old := p.records[a.ObjectID]; a.Kind {
	case catalog.Clear:
		*p = plan{clear: true, records: map[string][]byte{}, touched: map[string]bool{}}
		return nil
	case catalog.DeleteObject:
		p.records[a.ObjectID] = nil
	case catalog.PartialUpdateObject, catalog.PartialUpdateObjectNoCreate:
		if old == nil && a.Kind == catalog.PartialUpdateObjectNoCreate {
			return nil
		}
		if p.records[a.ObjectID], err = catalog.Merge(old, a.Record); err != nil {
			return err
		}
	default:
		p.records[a.ObjectID] = a.Record
	}
	p.touched[a.ObjectID] = true
	return nil
}

// within names the request of a batch that a refusal is about.
func within(i int, err error) error {
	var refusal *fault.Error
	if errors.As(err, &refusal) {
		return fault.New(refusal.Kind, "requests[%d]: %s", i, refusal.Message)
	}
	return fmt.Errorf("requests[%d]: %w", i, err)
}

// writes are the objects to store and to remove.
func (p *plan) writes(settings catalog.Settings) (put []store.Object, remove []string, err error) {
	for id := range p.touched {
		if p.records[id] == nil {
			remove = append(remove, id)
			continue
		}
		filters, err := catalog.Filters(p.records[id], settings)
		if err != nil {
			return nil, nil, fmt.Errorf("filters of object %q: %w", id, err)
		}
		put = append(put, store.Object{ID: id, Record: p.records[id],
			Filters: store.ObjectFilters{SettingsVersion: settings.Version, Filters: filters}})
	}
	return put, remove, nil
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
