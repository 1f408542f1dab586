package profile_test

import (
	"testing"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
)

// replicated is a fixture whose engine serves profiles from a replica that lags until
// the test lets it catch up.
type replicated struct {
	*fixture
	server *emulator.Replicated
}

func newReplicated(t testing.TB, dial ...grpc.DialOption) *replicated {
	t.Helper()
	b := &replicated{}
	b.fixture = newFixtureOn(t, func(tb testing.TB, dial ...grpc.DialOption) (*store.Store, *bigtable.Client) {
		server, s, client := storetest.NewReplicated(tb, dial...)
		b.server = server
		return s, client
	}, 90, plain, dial...)
	return b
}

func (b *replicated) catchUp() {
	b.t.Helper()
	if err := b.server.CatchUp(ctx); err != nil {
		b.t.Fatal(err)
	}
}

// with returns the app with a consistency.
func (b *replicated) with(c config.Consistency) config.App {
	app := b.app()
	app.Consistency = c
	return app
}

// reads returns what every kind of read answers.
func (b *replicated) reads(c config.Consistency, user string) map[string]profile.Result {
	b.t.Helper()
	single, err := b.eng.Read(ctx, b.with(c), user, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	ranking, err := b.eng.ReadRanking(ctx, b.with(c), user)
	if err != nil {
		b.t.Fatal(err)
	}
	many, err := b.eng.ReadMany(ctx, b.with(c), []string{user, "nobody"}, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return map[string]profile.Result{"single": single, "ranking": ranking, "many": many[user]}
}

func (b *replicated) expect(when string, c config.Consistency, user string, want float64) {
	b.t.Helper()
	for kind, r := range b.reads(c, user) {
		if red(r) != want {
			b.t.Errorf("%s, %s, %s: red %v, want %v", when, c, kind, red(r), want)
		}
	}
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
