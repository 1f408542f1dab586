package enrich

import (
	"encoding/binary"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// LogEvents returns the log rows of events received at a time (ms), with the filters
// of their objects.
// It leaves out instantsearch events, which Affinity accepts and does not
// store.
func LogEvents(events []event.Event, known bus.Resolution, receivedAt int64) []store.LogEvent {
	entries, c := make([]store.LogEvent, 0, len(events)), counter{objects: known.Objects, bands: known.Bands}
	for i := range events {
		e := &events[i]
		if e.Type == event.InstantSearch {
			continue
		}
		entry := c.logEvent(e, e.UserToken, e.Time, e.ID(), receivedAt)
		entry.Call = e.Call
		entries = append(entries, entry)
	}
	return entries
}

// Logged decodes the original in a row of the log, so that the event can be
// enriched again.
func Logged(o schema.Original, user string, ms int64, id string) (bus.Logged, error) {
	e, err := o.Decode()
	if err != nil {
		return bus.Logged{}, err
	}
	return bus.Logged{User: user, Time: ms, ID: id, ReceivedAt: o.ReceivedAt, Event: e}, nil
}

// Relogged returns new rows for logged events, with the current filters of
// their objects.
func Relogged(events []bus.Logged, known bus.Resolution) []store.LogEvent {
	entries, c := make([]store.LogEvent, len(events)), counter{objects: known.Objects, bands: known.Bands}
	for i := range events {
		l := &events[i]
		entries[i] = c.logEvent(&l.Event, l.User, l.Time, l.ID, l.ReceivedAt)
	}
	return entries
}

// counter makes the rows of events. Events that name the same objects share their
// counts.
type counter struct {
	objects bus.Objects
	bands   bus.Bands
	shared  map[string][]affinity.Count // by index and object IDs
	key     []byte                      // reused
}

// sharedFilters is from how many filters on the events with the same objects share
// their counts. To find the counts of fewer filters costs more than to make them.
const sharedFilters = 100

// counts returns the counts of an event. Nobody may change them.
func (c *counter) counts(e *event.Event) []affinity.Count {
	known, size := c.objects[e.Index], 0
	for _, id := range e.ObjectIDs { // also those that do not count: they cost time
		size += len(known[id])
	}
	if size < sharedFilters {
		return Counts(e, c.objects)
	}
	c.key = append(binary.AppendUvarint(c.key[:0], uint64(len(e.Index))), e.Index...)
	for _, id := range e.ObjectIDs {
		c.key = append(binary.AppendUvarint(c.key, uint64(len(id))), id...)
	}
	counts, ok := c.shared[string(c.key)]
	if !ok {
		if c.shared == nil {
			c.shared = map[string][]affinity.Count{}
		}
		counts = Counts(e, c.objects)
		c.shared[string(c.key)] = counts
	}
	return counts
}

func (c *counter) logEvent(e *event.Event, user string, time int64, id string, receivedAt int64) store.LogEvent {
	original := schema.Original{
		ReceivedAt: receivedAt, Index: e.Index, UnknownObjects: UnknownObjects(e, c.objects),
		LeftOutObjects: leftOut(e, c.objects), Event: e.Raw,
	}
	if len(e.ObjectIDs) > 0 {
		original.Bands = c.bands[e.Index]
	}
	named := schema.ObjectsOf(e)
	return store.LogEvent{
		User: user, Time: time, ID: id, Type: e.Type, Name: e.Name, Index: named.Index, ObjectIDs: named.ObjectIDs,
		Denied: e.Denied, Known: e.AuthenticatedUserToken, Counts: c.counts(e), Receipt: receivedAt,
		Original: original.Append(make([]byte, 0, len(e.Raw)+len(e.Index)+64)),
	}
}

// Place is the key of an event in the log of its app.
type Place struct {
	User string
	Time int64 // ms
	ID   string
}

// PlaceOf returns the place of a log row.
func PlaceOf(e *store.LogEvent) Place { return Place{e.User, e.Time, e.ID} }

// Incomplete returns the events that LogEvents logs without some of their
// filters, and how many objects of each event the catalog does not know.
func Incomplete(events []event.Event, objects bus.Objects) map[Place]int {
	incomplete := map[Place]int{}
	for i := range events {
		e := &events[i]
		if n := UnknownObjects(e, objects); n > 0 && e.Type != event.InstantSearch {
			incomplete[Place{e.UserToken, e.Time, e.ID()}] = n
		}
	}
	return incomplete
}

// UnknownObjects counts the objects of an event that the catalog does not know.
// A known object may have no filters.
func UnknownObjects(e *event.Event, objects bus.Objects) int {
	known, n := objects[e.Index], 0
	for _, id := range e.ObjectIDs {
		if _, ok := known[id]; !ok {
			n++
		}
	}
	return n
}

// Counts returns the raw filters of an event, each with how many of the objects that
// the event counts have it (see event.Bound). A filter that the event itself gives
// counts 1.
func Counts(e *event.Event, objects bus.Objects) []affinity.Count {
	if len(e.ObjectIDs) == 0 {
		counts := make([]affinity.Count, len(e.Filters))
		for i, f := range e.Filters {
			counts[i] = affinity.Count{Facet: f.Facet, Value: f.Value, N: 1}
		}
		return counts
	}
	if len(e.ObjectIDs) == 1 {
		return countsOf(objects[e.Index][e.ObjectIDs[0]])
	}
	size := 0
	for filters := range counted(e, objects) {
		size += len(filters)
	}
	counts, at := make([]affinity.Count, 0, size), make(map[bus.Filter]int, size)
	for filters := range counted(e, objects) {
		for _, f := range filters {
			i, seen := at[f]
			if !seen {
				i = len(counts)
				at[f] = i
				counts = append(counts, affinity.Count{Facet: f[0], Value: f[1]})
			}
			counts[i].N++
		}
	}
	return counts
}

// Facets calls add with the facet of each filter of Counts, as often as there are filters.
func Facets(e *event.Event, objects bus.Objects, add func(facet string)) {
	if len(e.ObjectIDs) == 0 {
		for _, f := range e.Filters {
			add(f.Facet)
		}
		return
	}
	if len(e.ObjectIDs) == 1 {
		for _, f := range objects[e.Index][e.ObjectIDs[0]] {
			add(f[0])
		}
		return
	}
	for filters := range counted(e, objects) {
		for _, f := range filters {
			add(f[0])
		}
	}
}

// countsOf returns the filters of one object.
func countsOf(filters []bus.Filter) []affinity.Count {
	counts := make([]affinity.Count, len(filters))
	for i, f := range filters {
		counts[i] = affinity.Count{Facet: f[0], Value: f[1], N: 1}
	}
	return counts
}

// Admit returns the events that may be used for all purposes of an app that they serve, by the consent that they carry,
// and how many others there are. It reuses the memory of the list. What an event says decides on this event alone, and
// so whatever its user has said, in which order, and how often it is delivered.
func Admit(of consent.Setting, events []store.LogEvent) (admitted []store.LogEvent, withheld int) {
	if !of.On() {
		return events, 0
	}
	admitted = slices.DeleteFunc(events, func(e store.LogEvent) bool { return of.Denies(e.Denied, e.Type, e.Name) })
	return admitted, len(events) - len(admitted)
}
