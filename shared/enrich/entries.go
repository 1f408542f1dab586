package enrich

import (
	"encoding/json"
	"strconv"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/store"
)

// LogEvents are the events as they go to the log, with the filters that their
// objects had. Instantsearch events are left out: they are accepted and not
// stored.
func LogEvents(events []event.Event, objects bus.Objects, receivedAt int64) []store.LogEvent {
	entries := make([]store.LogEvent, 0, len(events))
	for i := range events {
		e := &events[i]
		if e.Type == event.InstantSearch {
			continue
		}
		entries = append(entries, logEvent(e, e.UserToken, e.Time, e.ID(), objects, receivedAt))
	}
	return entries
}

// Relogged are events of the log as they go there again, in their old places, with
// the filters that their objects have now.
func Relogged(events []bus.Logged, objects bus.Objects) []store.LogEvent {
	entries := make([]store.LogEvent, len(events))
	for i := range events {
		l := &events[i]
		entries[i] = logEvent(&l.Event, l.User, l.Time, l.ID, objects, l.ReceivedAt)
	}
	return entries
}

func logEvent(e *event.Event, user string, time int64, id string, objects bus.Objects, receivedAt int64) store.LogEvent {
	return store.LogEvent{
		User: user, Time: time, ID: id, Type: e.Type, Name: e.Name,
		Counts: Counts(e, objects), Original: original(e, objects, receivedAt),
	}
}

// Place is where an event lies in the log of its app.
type Place struct {
	User string
	Time int64 // ms
	ID   string
}

// PlaceOf is the place of an event that goes to the log.
func PlaceOf(e *store.LogEvent) Place { return Place{e.User, e.Time, e.ID} }

// Incomplete are the events that LogEvents writes without all of their filters, and
// how many of the objects of each the catalog does not know.
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

// original is the event as it is kept beside its filters:
// {"receivedAt":1700000000000,"index":"products","event":{...as sent...}}, with
// "unknownObjects":2 before the event where the catalog did not know so many of
// its objects.
func original(e *event.Event, objects bus.Objects, receivedAt int64) []byte {
	index, _ := json.Marshal(e.Index)
	b := make([]byte, 0, len(e.Raw)+len(index)+64)
	b = strconv.AppendInt(append(b, `{"receivedAt":`...), receivedAt, 10)
	b = append(append(b, `,"index":`...), index...)
	if n := UnknownObjects(e, objects); n > 0 {
		b = strconv.AppendInt(append(b, `,"unknownObjects":`...), int64(n), 10)
	}
	b = append(b, `,"event":`...)
	return append(append(b, e.Raw...), '}')
}

// UnknownObjects counts the objects of an event that the catalog does not know:
// those that are absent, unlike those that have no filters.
func UnknownObjects(e *event.Event, objects bus.Objects) int {
	known, n := objects[e.Index], 0
	for _, id := range e.ObjectIDs {
		if _, ok := known[id]; !ok {
			n++
		}
	}
	return n
}

// Counts are the raw filters of an event: how many of its objects carry each,
// or 1 for filters that the event itself gives.
func Counts(e *event.Event, objects bus.Objects) []affinity.Count {
	if len(e.ObjectIDs) == 0 {
		counts := make([]affinity.Count, len(e.Filters))
		for i, f := range e.Filters {
			counts[i] = affinity.Count{Facet: f.Facet, Value: f.Value, N: 1}
		}
		return counts
	}
	known := objects[e.Index]
	if len(e.ObjectIDs) == 1 {
		return countsOf(known[e.ObjectIDs[0]])
	}
	most := 0
	for _, id := range e.ObjectIDs {
		most += len(known[id])
	}
	counts, at := make([]affinity.Count, 0, most), make(map[bus.Filter]int, most)
	for _, id := range e.ObjectIDs {
		for _, f := range known[id] {
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

// countsOf are the filters of one object.
func countsOf(filters []bus.Filter) []affinity.Count {
	counts := make([]affinity.Count, len(filters))
	for i, f := range filters {
		counts[i] = affinity.Count{Facet: f[0], Value: f[1], N: 1}
	}
	return counts
}
