package enrich_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// ordinary are n events, each with an object of its own that has ten filters.
func ordinary(n int) ([]event.Event, []store.Object) {
	events, objects := make([]event.Event, n), make([]store.Object, n)
	for i := range events {
		id := fmt.Sprint("object", i)
		events[i] = event.Event{Type: event.Click, Name: "Clicked", Index: "i", UserToken: fmt.Sprint("user", i), Time: 1_796_000_000_000,
			ObjectIDs: []string{id}, Raw: make([]byte, 180)}
		objects[i] = store.Object{ID: id, Record: []byte(`{}`)}
		for f := range 10 {
			objects[i].Filters.Filters = append(objects[i].Filters.Filters, event.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", f*i)})
		}
	}
	return events, objects
}

func BenchmarkResolve(b *testing.B) {
	s, settings := storetest.New(b), config.NewMemory()
	must.Succeed(b, settings.CreateApp(b.Context(), config.App{ID: "app"}))
	e := enrich.New(s.Catalog, config.NewCached(settings, time.Hour))
	_, objects := ordinary(100)
	must.Succeed(b, s.Catalog.PutObjects(b.Context(), "app", "i", objects))
	for _, n := range []int{1, 100} {
		events, _ := ordinary(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if found, err := e.Resolve(b.Context(), "app", events); err != nil || len(found.Objects["i"]) != n {
					b.Fatal(len(found.Objects["i"]), err)
				}
			}
		})
	}
}

func BenchmarkLogEvents(b *testing.B) {
	for _, n := range []int{1, 100} {
		events, objects := ordinary(n)
		known := bus.Objects{}
		for _, o := range objects {
			list := make([]bus.Filter, len(o.Filters.Filters))
			for i, f := range o.Filters.Filters {
				list[i] = bus.Filter{f.Facet, f.Value}
			}
			known.Put("i", o.ID, list)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if rows := enrich.LogEvents(events, bus.Resolution{Objects: known}, 7); len(rows) != n {
					b.Fatal(len(rows))
				}
			}
		})
	}
}
