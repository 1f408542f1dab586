package profile_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// splitBench is a store whose serving reads go to a Bigtable of their own.
type splitBench struct {
	primary, replica *storetest.Process
	store, copied    *store.Store    // the second one writes the replica
	split, plain     *profile.Engine // with a replica, and without
	app              config.App
	now              int64
}

func newSplitBench(b *testing.B) *splitBench {
	s := &splitBench{primary: storetest.StartProcess(b), replica: storetest.StartProcess(b), now: 1_700_000_000_000}
	conn, err := grpc.NewClient(s.replica.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<28)))
	must.Succeed(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	toReplica := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if storetest.Serving(ctx) {
			cc = conn
		}
		return open(ctx, desc, cc, method, opts...)
	}
	s.store, _ = storetest.OpenServing(b, s.primary.Addr, "bench", grpc.WithChainStreamInterceptor(toReplica))
	s.copied, _ = storetest.OpenInstance(b, s.replica.Addr, "bench")
	apps := config.NewMemory()
	must.Succeed(b, apps.CreateApp(ctx, config.App{ID: appID}))
	if s.app, err = apps.App(ctx, appID); err != nil {
		b.Fatal(err)
	}
	s.app.Consistency = config.Strong
	alone, _ := storetest.OpenInstance(b, s.primary.Addr, "bench")
	for e, of := range map[**profile.Engine]*store.Store{&s.split: s.store, &s.plain: alone} {
		*e = profile.New(of, apps, config.NewCached(apps, 0), func() time.Time { return time.UnixMilli(s.now) }, slog.New(slog.DiscardHandler))
	}
	return s
}

// users stores profiles of so many values in both clusters. Those of the replica are of
// the ticket before if it is behind.
func (s *splitBench) users(b *testing.B, users, values int, behind bool) (tokens []string) {
	p := affinity.Profile{Anchor: s.now, Until: s.now + 90*day, Known: true, LastEventAt: s.now, Total: values}
	for i := range values {
		p.Affinities = append(p.Affinities, affinity.Affinity{Facet: fmt.Sprint("facet", i*10/values), Value: fmt.Sprintf("a value of %06d", i), Scores: []float64{float64(values - i)}})
	}
	encoded := p.AppendBinary(nil)
	for i := range users {
		tokens = append(tokens, fmt.Sprintf("user%d,%d,%v", values, i, behind))
		for _, in := range []*store.Store{s.store, s.copied} {
			row, err := in.Users.TakeTicket(ctx, appID, tokens[i])
			if err == nil && !(behind && in == s.copied) {
				row, err = in.Users.TakeTicket(ctx, appID, tokens[i])
			}
			if err == nil {
				err = in.Users.WriteProfiles(ctx, appID, []store.ProfileWrite{{User: tokens[i], Row: row, Value: encoded, Summary: make([]byte, 30)}})
			}
			must.Succeed(b, err)
		}
	}
	return tokens
}

// BenchmarkStrongRead compares a strong read of some users that takes profiles of so many
// values from a replica with one that reads the rows from the primary. It reports, for a
// user, what the primary sends, the processor time of the primary, and that of the three
// processes together. A replica that is behind has only older profiles.
func BenchmarkStrongRead(b *testing.B) {
	s := newSplitBench(b)
	s.split.SetSplitUsers(1)
	for _, values := range []int{10, 100, 1000, 10000} {
		for _, form := range []string{"plain", "replica", "behind"} {
			tokens, engine := s.users(b, 100, values, form == "behind"), s.split
			if form == "plain" {
				engine = s.plain
			}
			for _, users := range []int{1, 3, 10, 100} {
				b.Run(fmt.Sprintf("values=%d/users=%d/%s", values, users, form), func(b *testing.B) {
					s.measure(b, engine, tokens[:users])
				})
			}
		}
	}
}

func (s *splitBench) measure(b *testing.B, e *profile.Engine, tokens []string) {
	primary, replica, own, n := s.primary.Counts(b), s.replica.Counts(b), cpu.Time(), 0
	for b.Loop() {
		err := e.ReadEach(ctx, s.app, tokens, 10, func(_ string, r profile.Result) error {
			if n++; !r.Stored {
				b.Error("computed")
			}
			return nil
		})
		must.Succeed(b, err)
	}
	own = cpu.Time() - own
	primary, replica = s.primary.Counts(b).Sub(primary), s.replica.Counts(b).Sub(replica)
	micros := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(primary.Bytes)/float64(n), "primary-B/user")
	b.ReportMetric(micros(primary.CPU), "primary-us/user")
	b.ReportMetric(micros(primary.CPU+replica.CPU+own), "all-us/user")
}
