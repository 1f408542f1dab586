package backtest

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// Log holds the objects of one index and events, with names replaced by
// numbers. Add and Cases are not safe for concurrent use.
type Log struct {
	index   string
	objects []string // IDs, sorted: the number of an object is its place
	known   map[string]int32

	filters   []event.Filter
	filterOf  map[event.Filter]int32
	frequency []int32 // by filter: the objects that carry it
	carried   lists   // by object: numbers of its filters, in the object's order
	text      []int32 // by object: the bytes of its filters
	dates     map[string]*dates
	shown     *shownLists // nil: none were given

	users  []string
	userOf map[string]int32
	kinds  []kind
	kindOf map[kind]int32

	events []entry
	named  []int32 // objects of all events
	direct lists   // filters of events that name filters
	first  []int32 // by user: the place of their first event; one more at the end
	sealed bool
}

// kind is the type and name of events.
type kind struct {
	typ  event.Type
	name string
}

// entry is one event.
type entry struct {
	time       int64
	user, kind int32
	start      int32  // of its known objects in Log.named
	objects    uint16 // number of its known objects
	counted    uint16 // of them, those whose filters count, which come first
	direct     int32  // place in Log.direct, -1: none
	id         id
}

// id is an event's ID, padded with zeros. It holds no pointer, so the garbage
// collector skips the events of a large log.
type id [12]byte

func newID(s string) (i id) {
	copy(i[:], s)
	return i
}

// dates are the dates of one attribute, by object.
type dates struct {
	at    []int64 // ms
	dated []bool
}

// lists are lists of numbers in one piece of memory.
type lists struct {
	offsets []int32
	items   []int32
}

func (l *lists) add(items ...int32) {
	if len(l.offsets) == 0 {
		l.offsets = append(l.offsets, 0)
	}
	l.items = append(l.items, items...)
	l.offsets = append(l.offsets, int32(len(l.items)))
}

func (l *lists) at(i int32) []int32 { return l.items[l.offsets[i]:l.offsets[i+1]] }

// NewLog returns a log without events over the objects of an index. Of objects
// with one ID the last counts, as in an import.
func NewLog(index string, objects []Object) (*Log, error) {
	if len(objects) == 0 {
		return nil, refuse("the catalog of index %q has no objects", index)
	}
	l := &Log{
		index: index, known: make(map[string]int32, len(objects)),
		filterOf: map[event.Filter]int32{}, userOf: map[string]int32{}, kindOf: map[kind]int32{},
		dates: map[string]*dates{},
	}
	last := make(map[string]int, len(objects))
	for i, o := range objects {
		last[o.ID] = i
	}
	for id := range last {
		l.objects = append(l.objects, strings.Clone(id))
	}
	slices.Sort(l.objects)
	for i, id := range l.objects {
		l.known[id] = int32(i)
		l.addObject(int32(i), objects[last[id]])
	}
	return l, nil
}

func (l *Log) addObject(o int32, object Object) {
	numbers, text := make([]int32, len(object.Filters)), 0
	for i, f := range object.Filters {
		numbers[i] = l.filter(f)
		l.frequency[numbers[i]]++
		text += len(f.Facet) + len(f.Value)
	}
	l.carried.add(numbers...)
	l.text = append(l.text, int32(text))
	for attribute, at := range object.Dates {
		d := l.dates[attribute]
		if d == nil {
			d = &dates{at: make([]int64, len(l.objects)), dated: make([]bool, len(l.objects))}
			l.dates[attribute] = d
		}
		d.at[o], d.dated[o] = at, true
	}
}

// filter returns the number of a filter.
func (l *Log) filter(f event.Filter) int32 {
	n, ok := l.filterOf[f]
	if !ok {
		f = event.Filter{Facet: strings.Clone(f.Facet), Value: strings.Clone(f.Value)}
		n = int32(len(l.filters))
		l.filterOf[f] = n
		l.filters = append(l.filters, f)
		l.frequency = append(l.frequency, 0)
	}
	return n
}

// Add adds an event, in any order. It keeps none of the event's memory.
func (l *Log) Add(e Event) {
	l.sealed = false
	entry := entry{time: e.Time, user: l.user(e.User), kind: l.kind(e.Type, e.Name), direct: -1, id: newID(e.ID)}
	if e.Index == l.index {
		l.addNamed(&entry, e.ObjectIDs)
	}
	if len(e.Filters) > 0 {
		entry.direct = int32(max(0, len(l.direct.offsets)-1))
		numbers := make([]int32, len(e.Filters))
		for i, f := range e.Filters {
			numbers[i] = l.filter(f)
		}
		l.direct.add(numbers...)
	}
	l.events = append(l.events, entry)
}

// maxNamed is the largest number of objects that an event of a log names. The engine
// permits 20.
const maxNamed = math.MaxUint16

// addNamed adds the known objects that an event names, each once, and counts their
// filters as the engine does (see event.Bound).
func (l *Log) addNamed(e *entry, ids []string) {
	var bound event.Bound
	var rest []int32 // do not count
	e.start = int32(len(l.named))
	for _, id := range ids[:min(len(ids), maxNamed)] {
		o, ok := l.known[id]
		switch {
		case !ok:
			bound.Counts(0, 0)
		case slices.Contains(l.named[e.start:], o) || slices.Contains(rest, o):
		case bound.Counts(len(l.carried.at(o)), int(l.text[o])):
			l.named = append(l.named, o)
		default:
			rest = append(rest, o)
		}
	}
	e.counted = uint16(len(l.named) - int(e.start))
	l.named = append(l.named, rest...)
	e.objects = e.counted + uint16(len(rest))
}

func (l *Log) user(token string) int32 {
	n, ok := l.userOf[token]
	if !ok {
		token = strings.Clone(token)
		n = int32(len(l.users))
		l.userOf[token] = n
		l.users = append(l.users, token)
	}
	return n
}

func (l *Log) kind(typ event.Type, name string) int32 {
	k := kind{typ, name}
	n, ok := l.kindOf[k]
	if !ok {
		k.name = strings.Clone(name)
		n = int32(len(l.kinds))
		l.kindOf[k] = n
		l.kinds = append(l.kinds, k)
	}
	return n
}

// seal sorts the events by user, time and ID, users by their tokens, and drops
// events that occur twice. So nothing depends on the order of the input.
func (l *Log) seal() {
	if l.sealed {
		return
	}
	l.sortUsers()
	slices.SortFunc(l.events, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.time, b.time), bytes.Compare(a.id[:], b.id[:]))
	})
	l.events = slices.CompactFunc(l.events, func(a, b entry) bool {
		return a.user == b.user && a.time == b.time && a.id == b.id
	})
	l.first = make([]int32, len(l.users)+1)
	for _, e := range l.events {
		l.first[e.user+1]++
	}
	for i := range l.users {
		l.first[i+1] += l.first[i]
	}
	l.sealed = true
}

// sortUsers numbers users in the order of their tokens.
func (l *Log) sortUsers() {
	sorted := slices.Sorted(slices.Values(l.users))
	number := make([]int32, len(l.users)) // by old number
	for i, token := range sorted {
		number[l.userOf[token]] = int32(i)
		l.userOf[token] = int32(i)
	}
	l.users = sorted
	for i := range l.events {
		l.events[i].user = number[l.events[i].user]
	}
}

// objectsOf returns the known objects that an event names, each once.
func (l *Log) objectsOf(e *entry) []int32 { return l.named[e.start : e.start+int32(e.objects)] }

// countedOf returns those of them whose filters count.
func (l *Log) countedOf(e *entry) []int32 { return l.named[e.start : e.start+int32(e.counted)] }

// Events returns the number of events that the log holds. Equal events count
// once after the first call of Cases.
func (l *Log) Events() int { return len(l.events) }

// Users returns the number of users with an event in the log.
func (l *Log) Users() int { return len(l.users) }

// Objects returns the number of objects of the catalog.
func (l *Log) Objects() int { return len(l.objects) }
