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

// MaxHistory is how many objects of a session bring in others. The steps that reach it count
// whole.
const MaxHistory = 50

// Past is an object of the user's session.
type Past struct {
	ObjectID string
	Last     bool // the user's last instant names it
	Age      int  // steps that are newer than the newest which names the object
}

// Recent collects the objects of a session by its steps: the instants that name an object
// which the statistics know. The zero value has seen none.
type Recent struct {
	steps, objects int
	time           int64
}

// Adds reports whether the objects of an event count, and how many steps are newer. It takes
// those events, newest first, that name a known object.
func (r *Recent) Adds(time int64) (age int, ok bool) {
	if r.steps == 0 || time != r.time {
		if r.objects >= MaxHistory {
			return 0, false
		}
		r.time = time
		r.steps++
	}
	return r.steps - 1, true
}

// Added counts an object that no newer step names.
func (r *Recent) Added() { r.objects++ }

// History lists the objects of an index that a session names and that the statistics know,
// each once. known reports whether the catalog holds an object: the last instant goes by
// that. counted reports whether the statistics know it.
func History(session affinity.Session, index string, known, counted func(objectID string) bool) []Past {
	var last LastInstant
	var recent Recent
	var past []Past
	places := map[string]bool{}
	for _, e := range session.Events { // newest first
		if e.Index != index {
			continue
		}
		isLast := last.Holds(e.Time, slices.ContainsFunc(e.ObjectIDs, known))
		if !slices.ContainsFunc(e.ObjectIDs, counted) {
			continue
		}
		age, ok := recent.Adds(e.Time)
		if !ok {
			break
		}
		for _, id := range e.ObjectIDs {
			if counted(id) && !places[id] {
				places[id] = true
				recent.Added()
				past = append(past, Past{id, isLast, age})
			}
		}
	}
	return past
}
