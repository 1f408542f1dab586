package enrich_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

var ctx = context.Background()

func put(t *testing.T, s *store.Store, id, record string, version int64, filters ...event.Filter) {
	t.Helper()
	o := store.Object{ID: id, Record: []byte(record), Filters: store.ObjectFilters{SettingsVersion: version, Filters: filters}}
	must.Succeed(t, s.Catalog.PutObjects(ctx, "app", "i", []store.Object{o}))
}

func resolve(t *testing.T, e *enrich.Enricher, ids ...string) bus.Objects {
	t.Helper()
	known, err := e.Resolve(ctx, "app", []event.Event{{Index: "i", ObjectIDs: ids}})
	must.Succeed(t, err)
	return known.Objects
}

func TestResolve(t *testing.T) {
	s, settings := storetest.New(t), config.NewMemory()
	must.Succeed(t, settings.CreateApp(ctx, config.App{ID: "app"}))
	e := enrich.New(s.Catalog, config.NewCached(settings, 0))
	put(t, s, "1", `{"objectID":"1","color":"Red","size":"L"}`, 0, event.Filter{Facet: "color", Value: "Red"}, event.Filter{Facet: "size", Value: "L"})
	one := []bus.Filter{{"color", "Red"}, {"size", "L"}}
	if diff := cmp.Diff(bus.Objects{"i": {"1": one}}, resolve(t, e, "1", "2", "1")); diff != "" {
		t.Errorf("an unknown object must be absent (-want +got):\n%s", diff)
	}
	put(t, s, "2", `{"objectID":"2","color":"Blue"}`, 0, event.Filter{Facet: "color", Value: "Blue"})
	if diff := cmp.Diff(bus.Objects{"i": {"1": one, "2": {{"color", "Blue"}}}}, resolve(t, e, "1", "2")); diff != "" {
		t.Errorf("an object saved a moment ago must be found (-want +got):\n%s", diff)
	}
	if _, err := settings.SetIndexSettings(ctx, "app", "i", catalog.Change{AttributesForFaceting: []string{"size"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bus.Objects{"i": {"1": {{"size", "L"}}, "2": {}}}, resolve(t, e, "1", "2")); diff != "" {
		t.Errorf("new settings hold for objects stored and cached before (-want +got):\n%s", diff)
	}
}

func TestCounts(t *testing.T) {
	objects := bus.Objects{"i": {"1": {{"color", "Red"}, {"size", "L"}}, "2": {{"color", "Red"}}}}
	for _, test := range []struct {
		name string
		e    event.Event
		want []affinity.Count
	}{
		{"each object once", event.Event{Index: "i", ObjectIDs: []string{"1", "2", "3"}},
			[]affinity.Count{{Facet: "color", Value: "Red", N: 2}, {Facet: "size", Value: "L", N: 1}}},
		{"one object", event.Event{Index: "i", ObjectIDs: []string{"2"}}, []affinity.Count{{Facet: "color", Value: "Red", N: 1}}},
		{"another index", event.Event{Index: "j", ObjectIDs: []string{"1", "2"}}, []affinity.Count{}},
		{"filters", event.Event{Index: "i", Filters: []event.Filter{{Facet: "a", Value: "b"}}}, []affinity.Count{{Facet: "a", Value: "b", N: 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, enrich.Counts(&test.e, objects)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstantsearchEventsAreNotStored(t *testing.T) {
	events := []event.Event{{Type: event.InstantSearch, UserToken: "u"}, {Type: event.View, UserToken: "u", Raw: []byte(`{"a":1}`), Index: `a"b`}}
	got := enrich.LogEvents(events, bus.Resolution{}, 7)
	if len(got) != 1 || string(got[0].Original) != `{"receivedAt":7,"index":"a\"b","event":{"a":1}}` {
		t.Errorf("%+v", got)
	}
}

// An object in one index does not make the same id in another index known.
func TestUnknownObjectsAreOfTheirIndex(t *testing.T) {
	objects := bus.Objects{"i": {"1": {}}}
	for index, want := range map[string]string{"i": `{"receivedAt":7,"index":"i","event":}`, "j": `{"receivedAt":7,"index":"j","unknownObjects":1,"event":}`} {
		got := enrich.LogEvents([]event.Event{{Type: event.View, Index: index, ObjectIDs: []string{"1"}}}, bus.Resolution{Objects: objects}, 7)
		if string(got[0].Original) != want {
			t.Errorf("%s, want %s", got[0].Original, want)
		}
	}
}

// Unknown objects and objects without filters are distinguished, also in a
// published message, and in each part of a message that was split.
func TestUnknownObjects(t *testing.T) {
	s, settings := storetest.New(t), config.NewMemory()
	must.Succeed(t, settings.CreateApp(ctx, config.App{ID: "app"}))
	e := enrich.New(s.Catalog, config.NewCached(settings, 0))
	put(t, s, "red", `{"objectID":"red","color":"Red"}`, 0, event.Filter{Facet: "color", Value: "Red"})
	put(t, s, "bare", `{"objectID":"bare"}`, 0)
	const event = `{"eventType":"view","eventName":"n","userToken":"u","timestamp":1,`
	for _, test := range []struct{ name, event, want string }{
		{"known", event + `"index":"i","objectIDs":["red","bare"]}`, ``},
		{"without filters", event + `"index":"i","objectIDs":["bare"]}`, ``},
		{"unknown", event + `"index":"i","objectIDs":["nowhere"]}`, `,"unknownObjects":1`},
		{"of another index", event + `"index":"j","objectIDs":["red","bare"]}`, `,"unknownObjects":2`},
		{"some of them", event + `"index":"i","objectIDs":["red","nowhere","never"]}`, `,"unknownObjects":2`},
		{"by filters", event + `"index":"i","filters":["color:Red"]}`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent := bus.Message{App: "app", ReceivedAt: 7, Body: []byte(`{"events":[` + test.event + `]}`)}
			events, err := sent.Events()
			must.Succeed(t, err)
			// Twice: from the store, and from the cache.
			for _, from := range []string{"store", "cache"} {
				known, err := e.Resolve(ctx, "app", events)
				must.Succeed(t, err)
				sent.Objects = known.Objects
				data, err := sent.Encode()
				must.Succeed(t, err)
				got, err := bus.DecodeMessage(data)
				must.Succeed(t, err)
				index := events[0].Index
				want := `{"receivedAt":7,"index":"` + index + `"` + test.want + `,"event":` + test.event + `}`
				if entries := enrich.LogEvents(events, got.Resolution(), 7); string(entries[0].Original) != want {
					t.Errorf("from the %s: %s, want %s", from, entries[0].Original, want)
				}
			}
		})
	}
}

// An object of the largest size, for many events.
func TestResolutionEndsAtMaxCost(t *testing.T) {
	s, settings := storetest.New(t), config.NewMemory()
	must.Succeed(t, settings.CreateApp(ctx, config.App{ID: "app"}))
	e := enrich.New(s.Catalog, config.NewCached(settings, 0))
	var filters []event.Filter
	for i := range 1000 {
		filters = append(filters, event.Filter{Facet: "f", Value: fmt.Sprintf("%063d", i)})
	}
	put(t, s, "large", `{"objectID":"large"}`, 0, filters...)
	const cost = 1000 * (64 + 48) // of one event
	most := enrich.MaxCost / cost
	events := make([]event.Event, 2*most)
	for i := range events {
		events[i] = event.Event{Index: "i", ObjectIDs: []string{"large"}}
	}
	if _, err := e.Resolve(ctx, "app", events[:most+1]); !errors.Is(err, enrich.ErrTooMuch) {
		t.Errorf("%d events: %v, want ErrTooMuch", most+1, err)
	}
	known, err := e.Resolve(ctx, "app", events[:most])
	objects := known.Objects
	if err != nil || len(objects["i"]["large"]) != 1000 {
		t.Errorf("%d events: %d filters, %v", most, len(objects["i"]["large"]), err)
	}
	if _, n, err := e.ResolveFirst(ctx, "app", events); n < most/2 || n > most || err != nil {
		t.Errorf("resolved the first %d events, %v; want %d to %d", n, err, most/2, most)
	}
	if _, n, err := e.ResolveFirst(ctx, "app", events[:most]); n != most || err != nil {
		t.Errorf("resolved the first %d events, %v; want all %d", n, err, most)
	}
	at := func(i int) *event.Event { return &events[i] }
	if n, total := enrich.Fit(len(events), at, objects); n != most || total != most*cost {
		t.Errorf("%d events fit and cost %d, want %d and %d", n, total, most, most*cost)
	}
	if n, _ := enrich.Fit(0, at, objects); n != 0 {
		t.Errorf("%d of no events fit", n)
	}
	// Events with equal objects share their counts.
	rows := enrich.LogEvents(events, known, 7)
	if &rows[0].Counts[0] != &rows[1].Counts[0] {
		t.Error("two events of one object have two lists of counts")
	}
}
