package profile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// spoil makes something of a user unreadable: a cell or a key of their log, or
// their manifest.
var spoil = map[string]func(b *fixture, user string){
	"a cell of the log": func(b *fixture, user string) {
		b.set(store.TableEvents, logRowKey(user, b.clock-day), "e", "conversion,Bought,color", b.clock-day)
	},
	"a key of the log": func(b *fixture, user string) {
		b.set(store.TableEvents, appID+","+user+",2023-11-14", "m", "event", b.clock-day)
	},
	"a manifest of a newer version": func(b *fixture, user string) {
		b.set(store.TableUsers, appID+","+user+",", "u", "m", b.clock)
	},
}

func logRowKey(user string, ms int64) string {
	e := bought(user, ms)
	return fmt.Sprintf("%s,%s,%s,%s", appID, user, time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"), e.ID)
}

// set writes bytes that are no value of any column.
func (b *fixture) set(table, key, family, column string, ms int64) {
	b.t.Helper()
	value := []byte{250, 250, 250, 250} // of no format that this version knows
	m := bigtable.NewMutation()
	m.DeleteCellsInColumn(family, column)
	m.Set(family, column, bigtable.Timestamp(ms*1000), value)
	if err := b.client.Open(table).Apply(ctx, key, m); err != nil {
		b.t.Fatal(err)
	}
}

// A user who cannot be read fails alone, in every operation on many users.
func TestFaultyUserFailsAlone(t *testing.T) {
	for name, do := range spoil {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, 90, plain)
			b.eng.SetMaxAdditions(0) // which read no log
			tokens := []string{"u0", "u1", "u2", "u3"}
			for _, u := range tokens {
				b.apply(bought(u, b.clock-day))
			}
			do(b, "u2")
			b.eng = b.engine() // another process, which must read the log
			b.eng.SetMaxAdditions(0)
			if _, err := b.eng.Apply(ctx, b.app(), []store.LogEvent{bought("u0", b.clock), bought("u2", b.clock)}); err == nil || !strings.Contains(err.Error(), "u2") {
				t.Errorf("a message of a faulty user: %v, want an error that names u2", err)
			}
			if r := b.read("u0"); red(r) != 60 || !r.Stored {
				t.Errorf("the other user of the message: %v (stored: %v), want 60", red(r), r.Stored)
			}

			b.setStrategy(plainer)
			b.setStrategy(plain)
			faulty := profile.Faulty{}
			results, err := b.eng.ReadMany(ctx, b.app(), tokens, 0)
			if !errors.As(err, &faulty) || len(faulty) != 1 || faulty["u2"] == nil || len(results) != 3 || red(results["u3"]) != 30 {
				t.Errorf("read many: %v, %d results", err, len(results))
			}
			profiles, err := b.eng.Compute(ctx, b.app(), tokens, affinity.Compile(plain))
			if !errors.As(err, &faulty) || len(faulty) != 1 || len(profiles) != 3 {
				t.Errorf("compute: %v, %d profiles", err, len(profiles))
			}
			if _, err := b.eng.Read(ctx, b.app(), "u2", 0); err == nil {
				t.Error("the faulty user has a profile")
			}
			for _, o := range []profile.RecomputeOptions{{}, {OnlyStale: true, Maintain: true}} {
				p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, o, func(profile.Progress) error { return nil })
				if err != nil || p.Faulty != 1 || len(p.Faults) != 1 || !strings.Contains(p.Faults[0], "u2") || p.Users != 4 {
					t.Errorf("recompute %+v: %+v, %v; want u2 counted and named", o, p, err)
				}
			}
			if stale, _, err := b.eng.Verify(ctx, b.app(), store.Range{}, time.Time{}); stale != 0 || err != nil {
				t.Errorf("%d profiles are stale, %v", stale, err)
			}
			if r := b.read("u3"); red(r) != 30 || !r.Stored {
				t.Errorf("another user of the recompute: %v (stored: %v), want 30", red(r), r.Stored)
			}

			events := map[string]int{}
			p, err := b.eng.SweepObjects(ctx, b.app(), store.Range{}, profile.SweepOptions{Strategy: affinity.Compile(plain), Counts: true},
				func(user string, _ affinity.Event) error { events[user]++; return nil },
				func(profile.SweepProgress) error { return nil })
			if err != nil || p.Faulty != 1 || len(p.Faults) != 1 || events["u3"] != 1 || !p.Done {
				t.Errorf("sweep: %+v, %v, %v", p, events, err)
			}
		})
	}
}

const maxCell = 100_000

// refuseLarge answers as Bigtable does to a cell that is too large: a profile, here.
func refuseLarge(muts []*btpb.Mutation) error {
	for _, m := range muts {
		if c := m.GetSetCell(); c.GetFamilyName() == "p" && len(c.GetValue()) > maxCell {
			return status.Error(codes.InvalidArgument, "cell too large")
		}
	}
	return nil
}

type refusing struct{ grpc.ClientStream }

func (r refusing) SendMsg(msg any) error {
	if m, ok := msg.(*btpb.MutateRowsRequest); ok {
		for _, e := range m.GetEntries() {
			if err := refuseLarge(e.GetMutations()); err != nil {
				return err
			}
		}
	}
	return r.ClientStream.SendMsg(msg)
}

// A profile that Bigtable refuses becomes a marker, from which every read computes.
// It holds up no other user.
func TestRefusedProfileFailsAlone(t *testing.T) {
	b := newFixtureOn(t, storetest.NewWithClient, 90, plain,
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if m, ok := req.(*btpb.MutateRowRequest); ok {
				if err := refuseLarge(m.GetMutations()); err != nil {
					return err
				}
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			return refusing{s}, err
		}))
	fat := bought("u1", b.clock)
	for i := range 60 {
		fat.Counts = append(fat.Counts, affinity.Count{Facet: "color", Value: fmt.Sprint(i, strings.Repeat("x", 2000)), N: 1})
	}
	b.apply(bought("u0", b.clock), fat, bought("u2", b.clock))
	for _, u := range []string{"u0", "u2"} {
		if r := b.read(u); red(r) != 30 || !r.Stored {
			t.Errorf("%s: %v (stored: %v), want 30", u, red(r), r.Stored)
		}
	}
	if r := b.read("u1"); red(r) != 30 || r.Stored || r.Total != 61 {
		t.Errorf("the large profile: %v of %d (stored: %v), want it computed", red(r), r.Total, r.Stored)
	}
	p, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
	if err != nil || p.Written != 2 || p.Faulty != 1 || len(p.Faults) != 1 || !strings.Contains(p.Faults[0], "u1") || p.Known != 3 {
		t.Errorf("recompute: %+v, %v; want two written and u1 named", p, err)
	}
	if stale, _, err := b.eng.Verify(ctx, b.app(), store.Range{}, time.Time{}); stale != 0 || err != nil {
		t.Errorf("%d profiles are stale, %v", stale, err)
	}
}

// A row of the log that Bigtable refuses holds up no other user of its message, in
// either schema. Its user is named, and the message is delivered again.
func TestRefusedEventFailsAlone(t *testing.T) {
	var refused atomic.Value // the table in which the row is refused
	refused.Store("")
	b := newFixtureOn(t, storetest.NewWithClient, 90, plain, storetest.Refuse(func(table, key string) bool {
		return table == refused.Load() && strings.HasSuffix(key, ",refused")
	})...)
	if _, err := b.apps.UpdateLog(ctx, appID, func(a *config.App) error { a.Log.Write = schema.Names; return nil }); err != nil {
		t.Fatal(err)
	}
	for i, table := range []string{store.TableEvents, store.TableEventsNarrow} {
		refused.Store(table)
		late, bad, other := bought("u0", b.clock-int64(i)), bought("u1", b.clock-int64(i)), bought("u1", b.clock-hour-int64(i))
		bad.ID = "refused"
		for what, write := range map[string]func(context.Context, config.App, []store.LogEvent) (profile.Outcome, error){
			"apply": b.eng.Apply, "import": b.eng.Import,
		} {
			_, err := write(ctx, b.app(), []store.LogEvent{late, bad, other})
			faulty := profile.Faulty{}
			if !errors.As(err, &faulty) || len(faulty) != 1 || !strings.Contains(fmt.Sprint(faulty["u1"]), "refused") {
				t.Errorf("%s, %s: %v, want u1 named", what, table, err)
			}
		}
		want := 30 * float64(i+1)
		if r := b.read("u0"); red(r) != want {
			t.Errorf("%s: the other user has %v, want %v", table, red(r), want)
		}
		if r := b.read("u1"); red(r) < want {
			t.Errorf("%s: the other events of the user count %v, want at least %v", table, red(r), want)
		}
	}
	refused.Store("")
	b.apply(bought("u0", b.clock))
}
