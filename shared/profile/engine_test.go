package profile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	appID = "shop"
	hour  = int64(3_600_000)
	day   = 24 * hour
)

var ctx = context.Background()

var (
	plain = strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Viewed", EventType: event.View, Score: 1}, {EventName: "Bought", EventType: event.Conversion, Score: 10}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 3}, {FacetName: "brand", Score: 2}},
	}
	decaying = strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Bought", EventType: event.Conversion, Score: 7}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "color", Score: 5}},
		HalfLives:     strategy.InDays(1, 30),
	}
)

// fixture is an engine over a store of its own, with a clock that the test moves.
type fixture struct {
	t      testing.TB
	store  *store.Store
	client *bigtable.Client
	apps   *config.Store
	eng    *profile.Engine
	clock  int64
}

func newFixture(t testing.TB, retentionDays int, st strategy.Strategy) *fixture {
	t.Helper()
	return newFixtureOn(t, storetest.NewWithClient, retentionDays, st)
}

// newFixtureOn opens the store on a Bigtable of the test's choice.
func newFixtureOn(t testing.TB, open opener, retentionDays int, st strategy.Strategy, dial ...grpc.DialOption) *fixture {
	t.Helper()
	b := &fixture{t: t, apps: config.NewMemory(), clock: 1_700_000_000_000}
	b.store, b.client = open(t, dial...)
	must.Succeed(t, b.apps.CreateApp(ctx, config.App{ID: appID, RetentionDays: retentionDays}))
	b.setStrategy(st)
	b.eng = b.engine()
	return b
}

// now is the clock of engines.
func (b *fixture) now() time.Time { return time.UnixMilli(atomic.LoadInt64(&b.clock)) }

func (b *fixture) engine() *profile.Engine {
	return profile.New(b.store, b.apps, config.NewCached(b.apps, 0), b.now, slog.New(slog.DiscardHandler))
}

func (b *fixture) setStrategy(st strategy.Strategy) {
	b.t.Helper()
	if _, _, err := b.apps.SetStrategy(ctx, appID, st); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) app() config.App {
	b.t.Helper()
	app, err := b.apps.App(ctx, appID)
	must.Succeed(b.t, err)
	return app
}

func (b *fixture) apply(events ...store.LogEvent) profile.Outcome {
	b.t.Helper()
	outcome, err := b.eng.Apply(ctx, b.app(), events)
	must.Succeed(b.t, err)
	return outcome
}

func (b *fixture) importEvents(events ...store.LogEvent) {
	b.t.Helper()
	_, err := b.eng.Import(ctx, b.app(), events)
	must.Succeed(b.t, err)
}

func (b *fixture) read(user string) profile.Result {
	b.t.Helper()
	r, err := b.eng.Read(ctx, b.app(), user, 0)
	must.Succeed(b.t, err)
	return r
}

func (b *fixture) delete(user string) int64 {
	b.t.Helper()
	until, err := b.eng.Delete(ctx, appID, user)
	must.Succeed(b.t, err)
	return until.UnixMilli()
}

// bought is a conversion of a red thing.
func bought(user string, ms int64) store.LogEvent {
	return logEvent(user, ms, "Bought", event.Conversion, affinity.Count{Facet: "color", Value: "Red", N: 1})
}

func logEvent(user string, ms int64, name string, typ event.Type, counts ...affinity.Count) store.LogEvent {
	return store.LogEvent{User: user, Time: ms, ID: fmt.Sprintf("%011d", ms%1e11), Type: typ, Name: name, Counts: counts, Original: []byte("{}")}
}

// red is the score of color:Red, 0 if it is not there.
func red(r profile.Result) float64 {
	for _, a := range r.Affinities {
		if a.Facet == "color" && a.Value == "Red" {
			return a.Scores[0]
		}
	}
	return 0
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

func TestEventCountsInNextRead(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock-hour), bought("v", b.clock-hour), bought("u", b.clock))
	r := b.read("u")
	if red(r) != 60 || !r.Stored || r.LastEventAt != b.clock || r.StrategyVersion != 1 {
		t.Errorf("%+v, want the stored profile with 60", r)
	}
	b.apply(bought("u", b.clock-hour)) // a duplicate
	if r := b.read("u"); red(r) != 60 || !r.Stored {
		t.Errorf("a duplicate made %v", r)
	}
	if r := b.read("nobody"); r.Known {
		t.Errorf("the user is not known: %+v", r)
	}
}

func TestStrategyAppliesToNextRead(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock))
	b.setStrategy(decaying)
	if r := b.read("u"); red(r) != 35 || r.Stored || r.StrategyVersion != 2 {
		t.Errorf("%+v, want 35, computed under version 2", r)
	}
	if r := b.read("u"); red(r) != 35 || !r.Stored {
		t.Errorf("%+v, want the computed profile stored", r)
	}
	b.clock += day
	if r := b.read("u"); !near(red(r), 17.5) || !r.Stored {
		t.Errorf("%+v, want half after one half-life, still stored", r)
	}
}

func TestEventLeavesWindow(t *testing.T) {
	b := newFixture(t, 10, plain)
	first := b.clock
	b.clock += day
	b.apply(bought("u", first), logEvent("u", first+day, "Ignored", event.Click))
	b.clock = first + 10*day - 1
	if r := b.read("u"); red(r) != 30 || !r.Stored {
		t.Errorf("a millisecond before it leaves: %+v", r)
	}
	b.clock++
	if r := b.read("u"); red(r) != 0 || !r.Known || r.Stored {
		t.Errorf("as it leaves: %+v, want a known user without affinities", r)
	}
	b.clock += day
	if r := b.read("u"); r.Known {
		t.Errorf("after the last event left: %+v, want unknown", r)
	}
}

func TestRetentionInvalidatesProfile(t *testing.T) {
	b := newFixture(t, 1, plain)
	b.apply(bought("u", b.clock-2*day), bought("u", b.clock))
	if r := b.read("u"); red(r) != 30 {
		t.Fatalf("within a day: %+v", r)
	}
	must.Succeed(t, b.apps.SetRetention(ctx, appID, 0))
	if r := b.read("u"); red(r) != 60 || r.Stored {
		t.Errorf("without a limit: %+v, want both events", r)
	}
}

func TestDeletion(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock-hour))
	until := b.delete("u")
	if r := b.read("u"); r.Known {
		t.Errorf("after deletion: %+v", r)
	}
	// An event that was received before the deletion and applied after it.
	if outcome := b.apply(bought("u", until)); outcome.Deleted != 1 || outcome.Applied != 0 {
		t.Errorf("%+v, want the event to be dropped", outcome)
	}
	if r := b.read("u"); r.Known {
		t.Errorf("resurrected: %+v", r)
	}
	b.clock = until + 1
	b.apply(bought("u", b.clock))
	if r := b.read("u"); red(r) != 30 {
		t.Errorf("a new event begins a new profile: %+v", r)
	}
	n, err := b.eng.Purge(ctx, appID, "u", time.UnixMilli(b.clock+day))
	if err != nil || n != 1 {
		t.Errorf("purged %d, %v; want the one event that is deleted, not the new one", n, err)
	}
	if r := b.read("u"); red(r) != 30 {
		t.Errorf("the purge took a live event: %+v", r)
	}
}

func TestTombstoneAloneDeletes(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock))
	// The process dies after the first of a deletion's three writes.
	must.Succeed(t, b.store.Users.AdvanceTombstone(ctx, appID, "u", affinity.Tombstone{DeletedUntil: b.clock}))
	if r := b.read("u"); r.Known {
		t.Errorf("%+v: the stored profile is of events that are deleted", r)
	}
	b.clock++
	b.apply(bought("u", b.clock))
	if r := b.read("u"); red(r) != 30 || !r.Stored {
		t.Errorf("%+v, want the new event alone, stored", r)
	}
}

func TestDeletionKeepsNewerEvents(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.clock += 10
	b.apply(bought("u", b.clock)) // stamped by a machine whose clock is ahead
	b.clock -= 10
	b.delete("u")
	b.clock += 20
	if r := b.read("u"); red(r) != 30 {
		t.Errorf("%+v: a deletion must not hide an event newer than itself", r)
	}
}

func TestImportedHistoryCounts(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock))
	for i := range int64(3) {
		b.importEvents(bought("u", b.clock-i*day), bought("w", b.clock-i*day))
	}
	for _, user := range []string{"u", "w"} {
		if r := b.read(user); red(r) != 90 || r.Stored {
			t.Errorf("%s: %+v, want 90 computed", user, r)
		}
		if r := b.read(user); red(r) != 90 || !r.Stored {
			t.Errorf("%s: %+v, want 90 stored", user, r)
		}
	}
}

// A message that is given up after its log was written: what is in the log
// counts, though no refresh succeeded.
func TestAbandonInvalidatesProfile(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock))
	half := []store.LogEvent{bought("u", b.clock-1)}
	must.Succeed(t, b.store.Events.Log(appID, schema.Default()).Append(ctx, half))
	if r := b.read("u"); red(r) != 30 {
		t.Fatalf("%+v: not acknowledged, not yet counted", r)
	}
	must.Succeed(t, b.eng.Abandon(ctx, b.app(), half))
	if r := b.read("u"); red(r) != 60 || r.Stored {
		t.Errorf("%+v, want what the log says", r)
	}
}

// An event that the log holds counts at once, also if its clock is ahead: the profile is
// as of that event, and what has left the window by then does not count.
func TestProfileIsAsOfNewestEvent(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.eng.SetMaxAdditions(0) // what is added counts no event of another writer
	b.apply(bought("u", b.clock-90*day+3), bought("u", b.clock))
	if r := b.read("u"); red(r) != 60 {
		t.Fatalf("%+v, want two events", r)
	}
	must.Succeed(t, b.store.Events.Log(appID, schema.Default()).Append(ctx, []store.LogEvent{bought("u", b.clock+5)}))
	b.apply(bought("u", b.clock-1))
	for range 2 { // as the refresh stored it, and as a recompute does
		if r := b.read("u"); red(r) != 90 || !r.Stored || r.Anchor != b.clock+5 {
			t.Errorf("%+v, want the three newest events as of the newest", r)
		}
		if _, err := b.eng.Recompute(ctx, b.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStaleCacheKeepsNewerStrategy(t *testing.T) {
	b := newFixture(t, 90, plain)
	stale := b.app()
	b.setStrategy(decaying)
	b.apply(bought("u", b.clock))
	if _, err := b.eng.Apply(ctx, stale, []store.LogEvent{bought("u", b.clock-1)}); err != nil {
		t.Fatal(err)
	}
	if r := b.read("u"); r.StrategyVersion != 2 || !r.Stored {
		t.Errorf("%+v, want the newer strategy's profile kept", r)
	}
	r, err := b.eng.Read(ctx, stale, "u", 0)
	if err != nil || r.StrategyVersion != 2 || !r.Stored {
		t.Errorf("%+v, %v: a reader with a stale cache must notice", r, err)
	}
}

func TestReadMany(t *testing.T) {
	b := newFixture(t, 90, plain)
	var users []string
	for i := range 250 { // more than one chunk
		user := fmt.Sprint("u", i)
		users = append(users, user)
		if i%2 == 0 {
			b.apply(bought(user, b.clock))
		} else if _, err := b.eng.Import(ctx, b.app(), []store.LogEvent{bought(user, b.clock)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.eng.ReadMany(ctx, b.app(), append(users, "nobody"), 10)
	must.Succeed(t, err)
	for i, user := range users {
		if r := got[user]; red(r) != 30 || r.Stored != (i%2 == 0) {
			t.Errorf("%s: %+v", user, r)
		}
	}
	if got["nobody"].Known {
		t.Error("the user is not known")
	}
}

func TestNewerManifestIsRefused(t *testing.T) {
	b := newFixture(t, 90, plain)
	b.apply(bought("u", b.clock))
	m := bigtable.NewMutation()
	m.Set("u", "m", bigtable.Now(), []byte("packed by a newer version"))
	must.Succeed(t, b.client.Open(store.TableUsers).Apply(ctx, appID+",u,", m))
	if _, err := b.eng.Read(ctx, config.App{ID: appID, StrategyVersion: 9}, "u", 0); !errors.Is(err, profile.ErrManifest) {
		t.Errorf("computed over a manifest that this version cannot read: %v", err)
	}
	if _, err := b.eng.Apply(ctx, b.app(), []store.LogEvent{bought("u", b.clock-1)}); !errors.Is(err, profile.ErrManifest) {
		t.Errorf("applied over a manifest that this version cannot read: %v", err)
	}
}

func (b *fixture) recompute(o profile.RecomputeOptions) error {
	_, err := b.eng.Recompute(ctx, b.app(), store.Range{}, o, func(profile.Progress) error { return nil })
	return err
}

func (b *fixture) recomputeAll() {
	b.t.Helper()
	must.Succeed(b.t, b.recompute(profile.RecomputeOptions{}))
}
