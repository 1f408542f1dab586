package enrich_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// relogged reads events from the log's rows and resolves them again.
func relogged(t *testing.T, entries []store.LogEvent, objects bus.Objects) []store.LogEvent {
	t.Helper()
	var logged []bus.Logged
	for _, e := range entries {
		o, err := schema.ParseOriginal(e.Original)
		must.Succeed(t, err)
		l, err := enrich.Logged(o, e.User, e.Time, e.ID)
		must.Succeed(t, err)
		logged = append(logged, l)
	}
	return enrich.Relogged(logged, bus.Resolution{Objects: objects})
}

// Events that are read from the log and resolved to the same objects give the
// same rows, also events without a time and events whose index only the request
// named.
func TestReloggedEventsAreUnchanged(t *testing.T) {
	m := bus.Message{App: "app", ReceivedAt: 1_700_000_000_123, Request: 9, Ordinal: 3, Resolved: true, Body: []byte(`{"events":[
		{"eventType":"view","eventName":"<n>","index":"a\"b","userToken":"u","objectIDs":["1","2"]},
		{"eventType":"view","eventName":"<n>","index":"i","userToken":"u","objectIDs":["1","2"]},
		{ "eventType" : "click", "eventName":"n","index":"i","userToken":"u","timestamp":5,"objectIDs":["1"],"more":"\u00e9é<&"},
		{"eventType":"view","eventName":"n","index":"i","userToken":"v","timestamp":1800000000000,"objectIDs":["3"]},
		{"eventType":"view","eventName":"n","index":"i","userToken":"v","filters":["color:Red"]}]}`)}
	events, err := m.Events()
	must.Succeed(t, err)
	imported := `{"eventType":"view","eventName":"<n>","userToken":"u","objectIDs":["1","2"]}`
	if events[1], err = event.Decode([]byte(imported), event.Rules{Now: time.UnixMilli(m.ReceivedAt), Index: "default", Ordinal: 8}); err != nil {
		t.Fatal(err)
	}
	one := bus.Objects{"i": {"1": {{"color", "Red"}}}, "default": {"1": {{"color", "Blue"}}}}
	were := enrich.LogEvents(events, bus.Resolution{Objects: one}, m.ReceivedAt)
	for i, e := range were {
		o, err := schema.ParseOriginal(e.Original)
		must.Succeed(t, err)
		want, err := o.Objects()
		got := schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("event %d: %v; objects of the original and of the row (-want +got):\n%s", i, err, diff)
		}
		if named := len(events[i].ObjectIDs); len(got.ObjectIDs) != named || (got.Index != "") != (named > 0) {
			t.Errorf("event %d of %d objects names %+v", i, named, got)
		}
	}
	if diff := cmp.Diff(were, relogged(t, were, one)); diff != "" {
		t.Errorf("resolved to the same (-was +is):\n%s", diff)
	}
	all := bus.Objects{"i": {"1": {{"color", "Red"}}, "3": {}}, "default": {"1": {{"color", "Blue"}}, "2": {{"color", "Blue"}}}, `a"b`: one["i"]}
	got := relogged(t, were, all)
	// The same events as if the objects had been there.
	if diff := cmp.Diff(enrich.LogEvents(events, bus.Resolution{Objects: all}, m.ReceivedAt), got); diff != "" {
		t.Errorf("resolved to more (-want +got):\n%s", diff)
	}
	var unknown []string
	for i := range were {
		unknown = append(unknown, unknownIn(were[i])+" "+unknownIn(got[i]))
	}
	if diff := cmp.Diff([]string{"2 1", "1 0", "0 0", "1 0", "0 0"}, unknown); diff != "" {
		t.Errorf("unknown objects before and after (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]affinity.Count{{Facet: "color", Value: "Blue", N: 2}}, got[1].Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// unknownIn returns the number of unknown objects in an event's original.
func unknownIn(e store.LogEvent) string {
	_, rest, found := strings.Cut(string(e.Original), `,"unknownObjects":`)
	if !found {
		return "0"
	}
	n, _, _ := strings.Cut(rest, ",")
	return n
}

func TestIncomplete(t *testing.T) {
	m := bus.Message{App: "app", ReceivedAt: 7, Resolved: true, Body: []byte(`{"events":[
		{"eventType":"view","eventName":"n","index":"i","userToken":"u","timestamp":1,"objectIDs":["1","2","3"]},
		{"eventType":"view","eventName":"n","index":"i","userToken":"u","timestamp":2,"objectIDs":["1"]},
		{"eventType":"view","eventName":"n","index":"i","userToken":"u","timestamp":2,"filters":["a:b"]},
		{"eventType":"instantsearch","eventName":"n","index":"i","userToken":"u","objectIDs":["2"]}]}`)}
	events, err := m.Events()
	must.Succeed(t, err)
	objects := bus.Objects{"i": {"1": {}}}
	entries := enrich.LogEvents(events, bus.Resolution{Objects: objects}, 7)
	want := map[enrich.Place]int{enrich.PlaceOf(&entries[0]): 2}
	if diff := cmp.Diff(want, enrich.Incomplete(events, objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Events share counts only if they name the same objects of the same index in the
// same order.
func TestSharedCounts(t *testing.T) {
	many := func(facet string) []bus.Filter {
		filters := make([]bus.Filter, 60)
		for i := range filters {
			filters[i] = bus.Filter{facet, fmt.Sprint(i)}
		}
		return filters
	}
	objects := bus.Objects{"i": {"1": many("a"), "2": many("b"), "12": many("c"), "": many("d")}, "j": {"1": many("e"), "2": many("f")}}
	named := []event.Event{
		{Index: "i", ObjectIDs: []string{"1", "2"}}, {Index: "i", ObjectIDs: []string{"12", ""}}, {Index: "j", ObjectIDs: []string{"1", "2"}},
		{Index: "i", ObjectIDs: []string{"1", "2"}}, {Index: "i", ObjectIDs: []string{"", "12"}},
	}
	rows := enrich.LogEvents(named, bus.Resolution{Objects: objects}, 7)
	for i := range named {
		if diff := cmp.Diff(enrich.Counts(&named[i], objects), rows[i].Counts); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
	}
	if &rows[0].Counts[0] != &rows[3].Counts[0] {
		t.Error("events with equal objects have lists of their own")
	}
}
