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
	// Left counts what of the objects in Put gives no filters.
	Left Left
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
	return NewPlanOf(actions, func(string) bool { return true }, stored, settings)
}

// NewPlanOf is NewPlan of some of the objects, by ID. The plans of all objects,
// executed one after the other, change what the plan of the batch changes, if the
// index is cleared once.
func NewPlanOf(actions []Action, of func(id string) bool, stored map[string][]byte, settings Settings) (Plan, error) {
	m := merge{records: make(map[string]state, len(stored)), touched: map[string]bool{}}
	for id, record := range stored {
		m.records[id] = state{record: record}
	}
	for i, a := range actions {
		if a.Kind != Clear && !of(a.ObjectID) {
			continue
		}
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
	records map[string]state // by ID; zero if the object does not exist
	touched map[string]bool  // the IDs of the objects that change
}

// state is the record of an object: as JSON, or open from the first partial update
// on, so that the updates of one object in a batch decode and encode it once.
type state struct {
	record []byte
	open   *updated
}

func (s state) exists() bool { return s.record != nil || s.open != nil }

func (m *merge) add(a Action) error {
	switch {
	case a.Kind == Clear:
		*m = merge{clear: true, records: map[string]state{}, touched: map[string]bool{}}
		return nil
	case a.Kind == DeleteObject:
		m.records[a.ObjectID] = state{}
	case a.partial():
		s := m.records[a.ObjectID]
		if !s.exists() && a.Kind == PartialUpdateObjectNoCreate {
			return nil
		}
		if s.open == nil {
			var err error
			if s.open, err = open(s.record); err != nil {
				return err
			}
			m.records[a.ObjectID] = state{open: s.open}
		}
		if err := s.open.update(a.Record); err != nil {
			return err
		}
	default:
		m.records[a.ObjectID] = state{record: a.Record}
	}
	m.touched[a.ObjectID] = true
	return nil
}

func (m *merge) plan(settings Settings) (Plan, error) {
	p := Plan{Clear: m.clear}
	for _, id := range slices.Sorted(maps.Keys(m.touched)) {
		s := m.records[id]
		if !s.exists() {
			p.Remove = append(p.Remove, id)
			continue
		}
		record := s.record
		if s.open != nil {
			var err error
			if record, err = join(s.open.attributes); err != nil {
				return Plan{}, fmt.Errorf("write object %q: %w", id, err)
			}
		}
		filters, err := countedFilters(record, settings, &p.Left)
		if err != nil {
			return Plan{}, fmt.Errorf("filters of object %q: %w", id, err)
		}
		p.Put = append(p.Put, Object{ID: id, Record: record, Filters: filters})
	}
	return p, nil
}
