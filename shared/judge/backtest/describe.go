package backtest

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
)

// Kind is a type and name that events of a log have.
type Kind struct {
	Type event.Type
	Name string
	// Events is how many have it, and Named how many of them name a known object.
	Events, Named int
}

// Kinds returns the kinds of a log's events, by type and name.
func (l *Log) Kinds() []Kind {
	kinds := make([]Kind, len(l.kinds))
	for i, k := range l.kinds {
		kinds[i] = Kind{Type: k.typ, Name: k.name}
	}
	for i := range l.events {
		e := &l.events[i]
		kinds[e.kind].Events++
		if e.objects > 0 {
			kinds[e.kind].Named++
		}
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name)) })
	return kinds
}

// EachObject passes on the filters of each object of the catalog.
func (l *Log) EachObject(do func([]event.Filter)) {
	for o := range l.objects {
		do(l.filtersOf(int32(o)))
	}
}

// DateAttributes returns the attributes that hold dates of objects, by name.
func (l *Log) DateAttributes() []string { return slices.Sorted(maps.Keys(l.dates)) }

// Log returns the log of the cases.
func (c *Cases) Log() *Log { return c.log }

// UserKey returns a hash of the user of case i that nothing else changes: cases
// of one user must stay together.
func (c *Cases) UserKey(i int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(c.log.users[c.cases[i].user])) // never fails
	return mix(h.Sum64())
}

// HistoryLen returns how many objects the user of case i had turned to before.
func (c *Cases) HistoryLen(i int) int { return int(c.cases[i].seenEnd - c.cases[i].seenStart) }

// titles are the attributes that say what an object is called.
var titles = []string{"title", "name"}

// Title returns what an object is called by its attribute title or name, or "".
func (l *Log) Title(objectID string) string {
	o, ok := l.known[objectID]
	if !ok {
		return ""
	}
	for _, attribute := range titles {
		for _, f := range l.carried.at(o) {
			if l.filters[f].Facet == attribute {
				return l.filters[f].Value
			}
		}
	}
	return ""
}
