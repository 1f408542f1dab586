package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// Object is a record with its filters.
type Object struct {
	ID      string
	Record  []byte
	Filters []event.Filter
}

// Plan says what a batch changes in an index, with one change for each object,
// even if several actions name it. The changes can be written in any order. A
// batch that is refused has no plan, so it changes nothing.
type Plan struct {
	// Clear removes every object of the index before any is put.
	Clear bool
	// Put are the objects to store. Remove are the IDs of the objects to
	// remove. Each list is sorted by ID, and no object is in both.
	Put    []Object
	Remove []string
}

// BuildsOn returns the IDs of the objects that partial updates change, each
// once. NewPlan needs the stored records of these objects.
func BuildsOn(actions []Action) []string {
	var ids []string
	seen := map[string]bool{}
	for _, a := range actions {
		if a.partial() && !seen[a.ObjectID] {
			seen[a.ObjectID] = true
			ids = append(ids, a.ObjectID)
		}
	}
	return ids
}

func (a Action) partial() bool {
	return a.Kind == PartialUpdateObject || a.Kind == PartialUpdateObjectNoCreate
}

// NewPlan merges the actions of a batch in their order. stored holds the stored
// records of the objects in BuildsOn, by ID, without those that do not exist.
// It is not changed. The error is a *fault.Error if a record becomes too large.
// Any other error means that a stored record is not a JSON object.
func NewPlan(actions []Action, stored map[string][]byte, settings Settings) (Plan, error) {
	m := merge{records: maps.Clone(stored), touched: map[string]bool{}}
	if m.records == nil {
		m.records = map[string][]byte{}
	}
	for i, a := range actions {
		if err := m.add(a); err != nil {
			var refusal *fault.Error
			if errors.As(err, &refusal) {
				return Plan{}, refuse(refusal.Kind, "requests[%d]: %s", i, refusal.Message)
			}
			return Plan{}, fmt.Errorf("requests[%d]: %w", i, err)
		}
	}
	return m.plan(settings)
}

// merge is the state of an index after the actions that are merged so far.
type merge struct {
	clear   bool
	records map[string][]byte // by ID; nil if the object does not exist
	touched map[string]bool   // the IDs of the objects that change
}

func (m *merge) add(a Action) (err error) {
	switch {
	case a.Kind == Clear:
		*m = merge{clear: true, records: map[string][]byte{}, touched: map[string]bool{}}
		return nil
	case a.Kind == DeleteObject:
		m.records[a.ObjectID] = nil
	case a.partial():
		old := m.records[a.ObjectID]
		if old == nil && a.Kind == PartialUpdateObjectNoCreate {
			return nil
		}
		if m.records[a.ObjectID], err = Merge(old, a.Record); err != nil {
			return err
		}
	default:
		m.records[a.ObjectID] = a.Record
	}
	m.touched[a.ObjectID] = true
	return nil
}

func (m *merge) plan(settings Settings) (Plan, error) {
	p := Plan{Clear: m.clear}
	for _, id := range slices.Sorted(maps.Keys(m.touched)) {
		record := m.records[id]
		if record == nil {
			p.Remove = append(p.Remove, id)
			continue
		}
		filters, err := Filters(record, settings)
		if err != nil {
			return Plan{}, fmt.Errorf("filters of object %q: %w", id, err)
		}
		p.Put = append(p.Put, Object{ID: id, Record: record, Filters: filters})
	}
	return p, nil
}
