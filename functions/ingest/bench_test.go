package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/ingest"
	events "github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkAccept sends one request after the other. Each names one object with
// ten filters. Function process applies the messages beside it.
func BenchmarkAccept(b *testing.B) {
	s := functiontest.Start(b)
	h := ingest.New(s.Backends.ForIngest())
	o := store.Object{ID: "1", Record: []byte(`{}`)}
	for f := range 10 {
		o.Filters.Filters = append(o.Filters.Filters, events.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", f)})
	}
	if err := s.Backends.Store.PutObjects(b.Context(), functiontest.App, "shoes", []store.Object{o}); err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 100} {
		one := `{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"ann","objectIDs":["1"]}`
		body := `{"events":[` + one + strings.Repeat(","+one, n-1) + `]}`
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if status, answer := functiontest.Call(h, "search", "POST", "/1/events", body); status != http.StatusOK {
					b.Fatal(status, answer)
				}
			}
			if err := s.Idle(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
