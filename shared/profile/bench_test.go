package profile_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// traffic counts requests, and the bytes of requests and answers.
type traffic struct{ requests, sent, received atomic.Int64 }

func (*traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*traffic) HandleConn(context.Context, stats.ConnStats)                       {}

func (tr *traffic) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.Begin:
		tr.requests.Add(1)
	case *stats.OutPayload:
		tr.sent.Add(int64(s.WireLength))
	case *stats.InPayload:
		tr.received.Add(int64(s.WireLength))
	}
}

// benchEvent is a view of one object with filters of two facets.
func benchEvent(at int64, i int) store.LogEvent {
	e := logEvent("u", at, "Viewed", event.View,
		affinity.Count{Facet: "color", Value: fmt.Sprint("color ", i%10), N: 1},
		affinity.Count{Facet: "brand", Value: fmt.Sprint("brand ", i%40), N: 1})
	e.Index, e.ObjectIDs = "products", []string{fmt.Sprint("object-", i%500)}
	return e
}

// BenchmarkRefresh delivers one event again and again to a user with some events in
// the log, and some in blocks.
func BenchmarkRefresh(b *testing.B) {
	for _, size := range []struct{ log, blocks int }{{10, 0}, {100, 0}, {10, 5_000}, {100, 5_000}} {
		b.Run(fmt.Sprintf("log=%d,blocks=%d", size.log, size.blocks), func(b *testing.B) {
			var tr traffic
			f := benchFixture(b, &tr)
			var events []store.LogEvent
			for i := range size.blocks {
				events = append(events, benchEvent(f.clock-80*day+int64(i)*60_000, i))
			}
			if size.blocks > 0 {
				f.apply(events...)
				if _, err := f.eng.Fold(ctx, f.app(), "u"); err != nil {
					b.Fatal(err)
				}
				if blocks, err := f.store.Histories.ListBlocks(ctx, appID, "u"); err != nil || len(blocks) == 0 {
					b.Fatalf("blocks %v, %v; want some", blocks, err)
				}
			}
			f.eng.NeverFold()
			events = nil
			for i := range size.log {
				events = append(events, benchEvent(f.clock-hour+int64(i)*1000, i))
			}
			f.apply(events...)
			tr.sent.Store(0)
			tr.received.Store(0)
			times := hdrhistogram.New(1, 1e10, 3)
			for b.Loop() {
				began := time.Now()
				f.apply(events[len(events)-1])
				_ = times.RecordValue(time.Since(began).Nanoseconds())
			}
			b.ReportMetric(float64(times.ValueAtQuantile(50))/1e6, "p50-ms")
			b.ReportMetric(float64(tr.sent.Load())/float64(b.N), "sentB")
			b.ReportMetric(float64(tr.received.Load())/float64(b.N), "receivedB")
		})
	}
}

func benchFixture(b *testing.B, tr *traffic) *fixture {
	b.Helper()
	return newFixtureOn(b, storetest.NewWithClient, 90, plain, grpc.WithStatsHandler(tr))
}

// BenchmarkReadRanking reads profile and session from one row.
func BenchmarkReadRanking(b *testing.B) {
	var tr traffic
	f := benchFixture(b, &tr)
	var events []store.LogEvent
	for i := range 100 {
		events = append(events, benchEvent(f.clock-hour+int64(i)*1000, i))
	}
	f.apply(events...)
	for name, read := range map[string]func() error{
		"profile": func() error { _, err := f.eng.Read(ctx, f.app(), "u", 0); return err },
		"ranking": func() error { _, err := f.eng.ReadRanking(ctx, f.app(), "u"); return err },
	} {
		b.Run(name, func(b *testing.B) {
			tr.received.Store(0)
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tr.received.Load())/float64(b.N), "receivedB")
		})
	}
}
