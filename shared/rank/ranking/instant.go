package ranking

import (
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// LastInstant finds the user's last instant, whose objects bring in the pairs:
// the newest time of a scoring event that names an object of the index's
// catalog. An event that names none, because its objects are of another index or
// not in the catalog, neither makes an instant nor hides an older one. The zero
// value has seen no event.
type LastInstant struct {
	time  int64
	found bool
}

// Holds reports whether an event of the user is of their last instant. It takes
// the scoring events newest first, each with its time (ms). named says that the
// event names an object of the catalog.
func (l *LastInstant) Holds(time int64, named bool) bool {
	if !l.found && named {
		l.time, l.found = time, true
	}
	return l.found && time == l.time
}

// Over reports whether all events at a time (ms) and before are older than the
// last instant.
func (l *LastInstant) Over(time int64) bool { return l.found && time < l.time }

// LastObjects returns the objects of an index that the events of the user's last
// instant name, each once. known reports whether the catalog holds an object;
// others are not listed.
func LastObjects(session affinity.Session, index string, known func(objectID string) bool) []string {
	var last LastInstant
	var ids []string
	listed := map[string]bool{}
	for _, e := range session.Events { // newest first
		if last.Over(e.Time) {
			break
		}
		if e.Index != index || !last.Holds(e.Time, slices.ContainsFunc(e.ObjectIDs, known)) {
			continue
		}
		for _, id := range e.ObjectIDs {
			if known(id) && !listed[id] {
				listed[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}
