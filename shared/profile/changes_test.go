package profile_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// The list of changes costs one write in ten seconds for a user, and no row that is read.
// An app without segments pays nothing.
func TestListCostsOneRow(t *testing.T) {
	for _, on := range []bool{false, true} {
		counted := &serverRows{n: map[string]int{}}
		b := newFixtureOn(t, counted.open, 90, plain)
		must.Succeed(t, b.apps.SetSegments(ctx, appID, on))
		next := b.clock - day
		expect := func(what string, entries int, want map[string]int) {
			t.Helper()
			if next++; on && entries > 0 {
				want["changes written"] = entries
			}
			got := counted.of(t, func() error {
				_, err := b.eng.Apply(ctx, b.app(), []store.LogEvent{bought("u", next)})
				return err
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("segments on: %v, %s (-want +got):\n%s", on, what, diff)
			}
		}
		expect("the first event", 1, map[string]int{"events written": 1, "events read": 1, "users written": 2})
		expect("an addition in the same slot", 0, map[string]int{"events written": 1, "users written": 2})
		b.clock += 10 * second
		expect("an addition in the next slot", 1, map[string]int{"events written": 1, "users written": 2})
		b.eng.SetMaxAdditions(0)
		expect("a computation in the same slot", 0, map[string]int{"events written": 1, "events read": 4, "users written": 2})
		b.clock += 10 * second
		expect("a computation in the next slot", 1, map[string]int{"events written": 1, "events read": 1, "users written": 2})
		if got := counted.of(t, func() error { b.read("u"); return nil }); got["changes written"] > 0 {
			t.Errorf("a read lists the user: %v", got)
		}
	}
}

// BenchmarkListedRefresh adds an event of one user in each slot, with segments off and on,
// and in one slot: what the list of changes costs a refresh.
func BenchmarkListedRefresh(b *testing.B) {
	for _, bench := range []struct {
		name string
		on   bool
		step int64
	}{{"off", false, 10 * second}, {"a slot each", true, 10 * second}, {"one slot", true, 0}} {
		b.Run(bench.name, func(b *testing.B) {
			var requests atomic.Int64
			f := newFixtureOn(b, storetest.NewWithClient, 90, plain, grpc.WithChainUnaryInterceptor(
				func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					requests.Add(1)
					return invoke(ctx, method, req, reply, cc, opts...)
				}))
			must.Succeed(b, f.apps.SetSegments(ctx, appID, bench.on))
			f.eng.NeverFold()
			at := f.clock - 80*day
			f.apply(benchEvent(at, 0))
			requests.Store(0)
			b.ReportAllocs()
			for b.Loop() {
				at++
				f.clock += bench.step
				f.apply(benchEvent(at, int(at%10)))
			}
			b.ReportMetric(float64(requests.Load())/float64(b.N), "unary/op")
		})
	}
}
