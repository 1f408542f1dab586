package profile_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// bigtableDelay is added to each request, as the network and Bigtable do: what
// messages share depends on how long they take.
const bigtableDelay = 3 * time.Millisecond

// BenchmarkDevices applies messages of one event, with each of the devices that spare work for
// users with many events switched off. Events of a user are 100 ms apart by the engine's clock.
func BenchmarkDevices(b *testing.B) {
	for _, load := range []struct {
		name    string
		users   int // of whom each has so many events in blocks before
		history int
		senders int // messages at a time
		most    int // events of a user, before the next users take their place
	}{
		{"hot", 10, 0, 16, 1 << 30},
		{"one user", 1, 0, 16, 1 << 30},
		{"sparse", 100, 0, 16, 5},
		{"long", 4, 100_000, 16, 1 << 30},
	} {
		b.Run(load.name, func(b *testing.B) {
			for _, device := range []struct {
				name string
				off  func(*profile.Engine) func() *profile.Engine // the engine of each message
			}{
				{"as it is", func(e *profile.Engine) func() *profile.Engine { return func() *profile.Engine { return e } }},
				{"without tails", func(e *profile.Engine) func() *profile.Engine {
					e.WithoutTails()
					return func() *profile.Engine { return e }
				}},
				{"without bases", func(e *profile.Engine) func() *profile.Engine {
					e.SetMaxAdditions(0)
					return func() *profile.Engine { return e }
				}},
				{"without inline blocks", func(e *profile.Engine) func() *profile.Engine {
					e.SetInlineEvents(0)
					return func() *profile.Engine { return e }
				}},
				{"without flights", func(e *profile.Engine) func() *profile.Engine { return e.WithoutFlights }},
				{"without group appends", func(e *profile.Engine) func() *profile.Engine { return e.WithoutGroups }},
				{"with a window of 1 s", nil},
			} {
				b.Run(device.name, func(b *testing.B) {
					var tr traffic
					bt := storetest.StartProcess(b)
					open := func(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
						return storetest.OpenAt(tb, bt.Addr, dial...)
					}
					f := newFixtureOn(b, open, 90, plain, append(slow(), grpc.WithStatsHandler(&tr))...)
					for u := range load.users {
						if load.history > 0 {
							f.past(fmt.Sprintf("user-%d", u), load.history)
						}
					}
					ended := func() {}
					of := func() *profile.Engine { return f.eng }
					if device.off != nil {
						of = device.off(f.eng)
					} else {
						ended = f.window(time.Second)
					}
					f.deliver(b, of, load.users, load.senders, load.most, &tr, ended)
				})
			}
		})
	}
}

// slow delays each request.
func slow() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			time.Sleep(bigtableDelay)
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			time.Sleep(bigtableDelay)
			return open(ctx, desc, cc, method, opts...)
		}),
	}
}

// past gives a user events over 80 days in blocks.
func (b *fixture) past(user string, n int) {
	b.t.Helper()
	var events []store.LogEvent
	for i := range n {
		e := benchEvent(b.clock-80*day+int64(i)*(79*day/int64(n)), i)
		e.User = user
		if events = append(events, e); len(events) == 1_000 || i == n-1 {
			b.importEvents(events...)
			events = nil
		}
	}
	if _, err := b.eng.Fold(ctx, b.app(), user); err != nil {
		b.t.Fatal(err)
	}
}

// window gives the app a write window. The returned function waits for the refreshes at the
// end of the last one.
func (b *fixture) window(lasts time.Duration) (ended func()) {
	b.t.Helper()
	must.Succeed(b.t, b.apps.SetLimits(ctx, appID, limit.Numbers{WriteWindowMs: int(lasts.Milliseconds())}))
	var mu sync.Mutex
	var tasks sync.WaitGroup
	waits := map[string]bool{}
	b.eng.SetLater(func(_ context.Context, app config.App, users []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, user := range users {
			if waits[user] {
				continue
			}
			waits[user] = true
			tasks.Go(func() {
				time.Sleep(lasts)
				mu.Lock()
				delete(waits, user)
				mu.Unlock()
				if _, err := b.eng.RefreshMarked(ctx, app, user); err != nil {
					b.t.Error(err)
				}
			})
		}
	})
	return tasks.Wait
}

// deliver applies b.N events, and reports what one took.
func (f *fixture) deliver(b *testing.B, of func() *profile.Engine, users, senders, most int, tr *traffic, ended func()) {
	b.Helper()
	app, began, base := f.app(), cpu.Time(), f.clock
	tr.requests.Store(0)
	tr.received.Store(0)
	var mu sync.Mutex
	times := hdrhistogram.New(1, 1e11, 3)
	b.ResetTimer()
	var g errgroup.Group
	g.SetLimit(senders)
	for i := range b.N {
		at := base + int64(i/users)*100 + int64(i%users)
		e := benchEvent(at, i)
		e.User = fmt.Sprintf("user-%d", i%users+i/users/most*users)
		g.Go(func() error {
			if now := atomic.LoadInt64(&f.clock); at > now {
				atomic.CompareAndSwapInt64(&f.clock, now, at)
			}
			began := time.Now()
			_, err := of().Apply(ctx, app, []store.LogEvent{e})
			mu.Lock()
			defer mu.Unlock()
			_ = times.RecordValue(time.Since(began).Nanoseconds())
			return err
		})
	}
	must.Succeed(b, g.Wait())
	ended()
	b.StopTimer()
	n := float64(b.N)
	b.ReportMetric(float64((cpu.Time()-began).Microseconds())/n, "cpu-us/event")
	b.ReportMetric(float64(tr.requests.Load())/n, "requests/event")
	b.ReportMetric(float64(tr.received.Load())/n, "receivedB/event")
	b.ReportMetric(float64(times.ValueAtQuantile(50))/1e6, "p50-ms")
	b.ReportMetric(float64(times.ValueAtQuantile(99))/1e6, "p99-ms")
}

// BenchmarkInlineBlocks recomputes users whose events are all in one block, in their row or in
// a row of its own, and then refreshes each.
func BenchmarkInlineBlocks(b *testing.B) {
	const users = 1_000
	for _, events := range []int{5, 30, 60} {
		for name, inline := range map[string]int{"in the row": profile.DefaultInlineEvents, "apart": 0} {
			b.Run(fmt.Sprintf("events=%d/%s", events, name), func(b *testing.B) {
				var tr traffic
				bt := storetest.StartProcess(b)
				open := func(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
					return storetest.OpenAt(tb, bt.Addr, dial...)
				}
				f := newFixtureOn(b, open, 90, plain, grpc.WithStatsHandler(&tr))
				f.eng.SetInlineEvents(inline)
				for i := range events {
					f.everyone(users, i)
				}
				must.Succeed(b, f.recompute(profile.RecomputeOptions{Maintain: true, Fold: true}))
				tr.received.Store(0)
				before, rows := cpu.Time(), bt.Counts(b)
				for b.Loop() {
					f.recomputeAll()
				}
				n := float64(b.N) * users
				read := bt.Counts(b).Sub(rows)
				b.ReportMetric(float64((cpu.Time()-before).Microseconds())/n, "cpu-us/user")
				b.ReportMetric(float64(read.CPU.Microseconds())/n, "server-cpu-us/user")
				b.ReportMetric(float64(tr.received.Load())/n, "receivedB/user")
				b.ReportMetric(float64(read.Rows)/n, "rows/user")
				tr.requests.Store(0)
				for u := range users {
					if _, err := f.eng.Refresh(ctx, f.app(), fmt.Sprintf("user-%d", u)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(tr.requests.Load())/users, "requests/refresh")
			})
		}
	}
}

// everyone gives each of some users an event of some weeks ago.
func (b *fixture) everyone(users, i int) {
	b.t.Helper()
	events := make([]store.LogEvent, users)
	for u := range events {
		events[u] = benchEvent(b.clock-40*day+int64(i)*day/2, u+i)
		events[u].User = fmt.Sprintf("user-%d", u)
	}
	b.importEvents(events...)
}
