package ingest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/shared/app/limit"
	events "github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkAccept sends one request after the other. Each event, or call of an SDK, names
// one object with ten filters. Function process applies the messages beside it.
func BenchmarkAccept(b *testing.B) {
	s := functiontest.Start(b)
	h := ingest.New(s.Backends.ForIngest())
	must.Succeed(b, s.Backends.CachedConfig.SetLimits(b.Context(), functiontest.App, limit.Numbers{EventsPerSecond: 1_000_000, UserEventsPerDay: 1_000_000_000}))
	o := store.Object{ID: "1", Record: []byte(`{}`)}
	for f := range 10 {
		o.Filters.Filters = append(o.Filters.Filters, events.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", f)})
	}
	must.Succeed(b, s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "shoes", []store.Object{o}))
	for _, c := range []struct {
		path, key, one string
		n              int
	}{
		{"/1/events", "events", `{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"ann","objectIDs":["1"]}`, 1},
		{"/1/events", "events", `{"eventType":"view","eventName":"Seen","index":"shoes","userToken":"ann","objectIDs":["1"]}`, 100},
		{"/v1/batch", "batch", `{"type":"track","event":"Product Viewed","userId":"ann","properties":{"search_index":"shoes","product_id":"1"}}`, 100},
	} {
		body := `{"` + c.key + `":[` + c.one + strings.Repeat(","+c.one, c.n-1) + `]}`
		b.Run(fmt.Sprint(c.path[1:], "/", c.n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				functiontest.Do(b, h, "search", "POST", c.path, body)
			}
			must.Succeed(b, s.Idle(b.Context()))
		})
	}
}

// BenchmarkCalls sends batches of 20 calls of an SDK and waits until process has applied
// them. Those of wrong clocks ask the memory of calls.
func BenchmarkCalls(b *testing.B) {
	s := functiontest.Start(b)
	h := ingest.New(s.Backends.ForIngest())
	must.Succeed(b, s.Backends.CachedConfig.SetLimits(b.Context(), functiontest.App, limit.Numbers{EventsPerSecond: 1_000_000, UserEventsPerDay: 1_000_000_000}))
	n := 0
	for _, users := range []int{20, 1} {
		for _, c := range []struct {
			name       string
			messageIDs bool
			off        time.Duration
		}{{"without messageIds", false, 0}, {"with messageIds", true, 0}, {"of wrong clocks", true, -time.Hour}} {
			b.Run(fmt.Sprintf("%d users/%s", users, c.name), func(b *testing.B) {
				for range b.N {
					sentAt, calls := time.Now().Add(c.off).UTC(), make([]string, 20)
					for i := range calls {
						n++
						messageID := ""
						if c.messageIDs {
							messageID = fmt.Sprintf(`"messageId":"m%d",`, n)
						}
						calls[i] = fmt.Sprintf(`{"type":"track",%s"event":"Product Viewed","userId":"u%d-%d","timestamp":%d,"properties":{"search_index":"shoes","product_id":"%d"}}`,
							messageID, n/2000, i%users, sentAt.UnixMilli()-int64(n%60_000), n%50)
					}
					functiontest.Do(b, h, "search", "POST", "/v1/batch", fmt.Sprintf(`{"sentAt":%d,"batch":[%s]}`, sentAt.UnixMilli(), strings.Join(calls, ",")))
				}
				must.Succeed(b, s.Idle(b.Context()))
				b.ReportMetric(float64(20*b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}
