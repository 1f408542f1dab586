package profile_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/store"
)

// replicated is a fixture whose engine serves profiles from a replica that lags until
// the test lets it catch up.
type replicated struct {
	*fixture
	server *storetest.Replicated
}

func newReplicated(t testing.TB, dial ...grpc.DialOption) *replicated {
	t.Helper()
	b := &replicated{}
	b.fixture = newFixtureOn(t, func(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
		server, s, client := storetest.NewReplicated(tb, dial...)
		b.server = server
		return s, client
	}, 90, plain, dial...)
	b.eng.SetSplitUsers(1)
	return b
}

func (b *replicated) catchUp() {
	b.t.Helper()
	must.Succeed(b.t, b.server.CatchUp(ctx))
}

// with returns the app with a consistency.
func (b *replicated) with(c config.Consistency) config.App {
	app := b.app()
	app.Consistency = c
	return app
}

// kinds are all kinds of reads.
func (b *replicated) kinds() map[string]func(app config.App, user string) (profile.Result, error) {
	return map[string]func(config.App, string) (profile.Result, error){
		"single":  func(app config.App, user string) (profile.Result, error) { return b.eng.Read(ctx, app, user, 0) },
		"ranking": func(app config.App, user string) (profile.Result, error) { return b.eng.ReadRanking(ctx, app, user) },
		"many": func(app config.App, user string) (profile.Result, error) {
			many, err := b.eng.ReadMany(ctx, app, []string{user, "nobody"}, 0)
			return many[user], err
		},
	}
}

// each reads a user in each way.
func (b *replicated) each(c config.Consistency, user string, fn func(kind string, r profile.Result)) {
	b.t.Helper()
	for kind, read := range b.kinds() {
		r, err := read(b.with(c), user)
		if err != nil {
			b.t.Fatal(kind, err)
		}
		fn(kind, r)
	}
}

func (b *replicated) expect(when string, c config.Consistency, user string, want float64) {
	b.t.Helper()
	b.each(c, user, func(kind string, r profile.Result) {
		if red(r) != want {
			b.t.Errorf("%s, %s, %s: red %v, want %v", when, c, kind, red(r), want)
		}
	})
}

// An eventual read answers what the replica has. A strong one answers what the cluster
// has that is written.
func TestLaggingReplica(t *testing.T) {
	b := newReplicated(t)
	b.apply(bought("u", b.clock))
	b.expect("before the first change", config.Eventual, "u", 30) // computed
	b.catchUp()
	b.apply(bought("u", b.clock-hour))
	b.expect("after an event", config.Eventual, "u", 30)
	b.expect("after an event", config.Strong, "u", 60)
	b.catchUp()
	b.expect("caught up", config.Eventual, "u", 60)
	b.expect("caught up", config.Strong, "u", 60)

	b.clock++
	b.delete("u")
	b.expect("after a deletion", config.Eventual, "u", 60)
	b.expect("after a deletion", config.Strong, "u", 0)
	b.catchUp()
	b.expect("deletion caught up", config.Eventual, "u", 0)

	b.clock += hour
	b.apply(bought("u", b.clock))
	b.catchUp()
	if _, err := b.eng.OptOut(ctx, appID, "u", event.Conversion); err != nil {
		t.Fatal(err)
	}
	b.expect("after an opt-out", config.Eventual, "u", 30)
	b.expect("after an opt-out", config.Strong, "u", 0)
}

// A strong read of many users takes a profile from the replica, if that has caught up, and
// nothing but the state of the row from the primary. Otherwise it takes the profile from
// the primary, as a read of one user does.
func TestStrongBatchSparesPrimary(t *testing.T) {
	b := newReplicated(t)
	const values = 900
	e := logEvent("u", b.clock, "Bought", event.Conversion)
	for i := range values {
		e.Counts = append(e.Counts, affinity.Count{Facet: "color", Value: fmt.Sprintf("%0100d", i), N: 1})
	}
	b.apply(e)
	row, err := b.store.Users.ReadUser(ctx, appID, "u")
	must.Succeed(t, err)
	size := int64(len(row.Profile))
	for _, step := range []struct {
		name     string
		do       func()
		profiles int64 // that the three kinds of reads take from the primary
	}{
		{"behind", func() {}, 3},
		{"caught up", b.catchUp, 2},
		{"few users", func() { b.eng.SetSplitUsers(10) }, 3},
		{"a refresh is under way", func() {
			b.eng.SetSplitUsers(1)
			if _, err := b.store.Users.TakeTicket(ctx, appID, "u"); err != nil {
				t.Fatal(err)
			}
		}, 3},
	} {
		step.do()
		before := b.server.PrimaryCounts()
		b.each(config.Strong, "u", func(kind string, r profile.Result) {
			if len(r.Affinities) != values || !r.Stored {
				t.Errorf("%s, %s: %d affinities, stored %v", step.name, kind, len(r.Affinities), r.Stored)
			}
		})
		if got := b.server.PrimaryCounts().Bytes - before.Bytes; got/size != step.profiles {
			t.Errorf("%s: the primary sent %d bytes, want those of %d profiles of %d", step.name, got, step.profiles, size)
		}
	}
}

// A batch stays strong if one of its profiles shows that the cached configuration is out of
// date.
func TestBatchStaysStrong(t *testing.T) {
	for _, row := range []string{"of the profile's version", "of the version before"} {
		b := newReplicated(t)
		cached := b.with(config.Strong)
		b.setStrategy(decaying)
		b.apply(bought("newer", b.clock), bought("u", b.clock))
		if row == "of the version before" { // as a process writes that has the configuration in its cache, too
			older := bigtable.NewMutation()
			older.Set("u", "v", bigtable.ServerTime, []byte{0, 0, 0, 0, 0, 0, 0, byte(cached.StrategyVersion)})
			must.Succeed(t, b.client.Open(store.TableUsers).Apply(ctx, appID+",newer,", older))
		}
		b.catchUp()
		b.apply(bought("u", b.clock-1))
		read, err := b.eng.ReadMany(ctx, cached, []string{"newer", "u"}, 0)
		if err != nil || !near(red(read["newer"]), 35) || red(read["u"]) < 69 {
			t.Errorf("row %s: %v, %v, %v; want 35 and almost 70", row, red(read["newer"]), red(read["u"]), err)
		}
	}
}

// A strong read of many users does without a replica that fails.
func TestStrongBatchWithoutReplica(t *testing.T) {
	b := newReplicated(t, grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
		method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if storetest.Serving(ctx) {
			return nil, status.Error(codes.FailedPrecondition, "the replica fails")
		}
		return open(ctx, desc, cc, method, opts...)
	}))
	b.apply(bought("u", b.clock))
	b.catchUp()
	if _, err := b.eng.Read(ctx, b.with(config.Eventual), "u", 0); err == nil {
		t.Fatal("the replica does not fail")
	}
	b.expect("without the replica", config.Strong, "u", 30)
}

// A row that was dropped is not taken from a replica that still has it.
func TestStrongBatchAfterDrop(t *testing.T) {
	b := newReplicated(t)
	b.apply(bought("u", b.clock))
	b.catchUp()
	drop := bigtable.NewMutation()
	drop.DeleteRow()
	must.Succeed(t, b.client.Open(store.TableUsers).Apply(ctx, appID+",u,", drop))
	read, err := b.eng.ReadMany(ctx, b.with(config.Strong), []string{"u"}, 0)
	if err != nil || read["u"].Stored {
		t.Errorf("%+v, %v: the profile is that of the dropped row", read["u"], err)
	}
}
