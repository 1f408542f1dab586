package event

import "slices"

// Queries returns the ids of the answers that led to a conversion: that of the event, and those of its objects.
func (e *Event) Queries() (ids []string) {
	if e.Type != Conversion {
		return nil
	}
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(e.QueryID)
	if e.details != nil {
		for _, o := range e.details.objectData {
			add(o.queryID)
		}
	}
	return ids
}

// Position returns where an object stood in the answer with the QueryID of a click, from 1; 0 if the click does not
// say.
func (e *Event) Position(objectID string) int64 {
	i := slices.Index(e.ObjectIDs, objectID)
	if i < 0 || e.details == nil || len(e.details.positions) != len(e.ObjectIDs) {
		return 0
	}
	return e.details.positions[i]
}
