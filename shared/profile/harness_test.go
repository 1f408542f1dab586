package profile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/store"
)

// harness leads processes from request to request, in the order that a test
// chooses.
type harness struct{ *fixture }

// opener opens a store on one kind of Bigtable.
type opener func(testing.TB, ...grpc.DialOption) (*store.Store, *bigtable.Client)

// onEveryBigtable runs a test on a Bigtable that drops superseded cells at once,
// and on one that keeps them for a while, as the deployed one does. The race detector sees
// the same code of this package with both.
func onEveryBigtable(t *testing.T, test func(*testing.T, opener)) {
	t.Run("in process", func(t *testing.T) { test(t, storetest.NewWithClient) })
	if race.On {
		return
	}
	t.Run("deployed", func(t *testing.T) { test(t, storetest.NewDeployed) })
}

// newHarness makes a harness on a Bigtable of the test's choice.
func newHarness(t *testing.T, open opener) *harness {
	t.Helper()
	s := &harness{newFixtureOn(t, open, 90, plain, gates()...)}
	s.eng = s.engine()
	return s
}

// onEveryHarness runs a test with a harness on every Bigtable.
func onEveryHarness(t *testing.T, test func(*testing.T, *harness)) {
	onEveryBigtable(t, func(t *testing.T, open opener) { test(t, newHarness(t, open)) })
}

// engine is an engine whose refreshes compute.
func (s *harness) engine() *profile.Engine {
	e := s.fixture.engine()
	e.SetMaxAdditions(0)
	return e
}

// clear empties the tables and makes another engine.
func (s *harness) clear() {
	s.t.Helper()
	for _, name := range []string{store.TableEvents, store.TableUsers, store.TableHistories, store.TableDictionaries, store.TableCalls,
		store.TableChanges, store.TableLocations} {
		table := s.client.Open(name)
		gone := bigtable.NewMutation()
		gone.DeleteRow()
		var keys []string
		err := table.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
			keys = append(keys, r.Key())
			return true
		})
		for _, key := range keys {
			err = errors.Join(err, table.Apply(ctx, key, gone))
		}
		must.Succeed(s.t, err)
	}
	s.eng = s.engine()
}

// folding is an engine whose refreshes fold from so many unfolded events on.
func (s *harness) folding(events int) *profile.Engine {
	e := s.engine()
	e.SetLimits(events, 100, 100, 100, time.Minute)
	return e
}

// neverFolding is an engine of another process that folds only in calls of Fold.
func (s *harness) neverFolding() *profile.Engine { return s.folding(1000) }

// at is an event so many hours after this time yesterday.
func (s *harness) at(hours int64) store.LogEvent { return bought("u", s.clock-day+hours*hour) }

// start starts a process and stops it before its first request.
func (s *harness) start(name string, do func(context.Context) error) *actor {
	a := newActor(name)
	a.run(do)
	s.next(a)
	return a
}

func (s *harness) startApply(e *profile.Engine, events ...store.LogEvent) *actor {
	app := s.app()
	return s.start("message", func(ctx context.Context) error {
		_, err := e.Apply(ctx, app, events)
		return err
	})
}

func (s *harness) startFold() *actor {
	app := s.app()
	return s.start("fold", func(ctx context.Context) error {
		_, err := s.neverFolding().Fold(ctx, app, "u")
		return err
	})
}

func (s *harness) startRead() *actor {
	app := s.app()
	return s.start("read", func(ctx context.Context) error {
		_, err := s.neverFolding().Read(ctx, app, "u", 0)
		return err
	})
}

func (s *harness) startRecompute() *actor {
	app := s.app()
	return s.start("recompute", func(ctx context.Context) error {
		_, err := s.neverFolding().Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
		return err
	})
}

// startRound starts a nightly round that does not fold.
func (s *harness) startRound() *actor {
	app, e := s.app(), s.engine()
	e.NeverFold()
	return s.start("round", func(ctx context.Context) error {
		_, err := e.Recompute(ctx, app, store.Range{}, profile.RecomputeOptions{OnlyStale: true, Maintain: true}, func(profile.Progress) error { return nil })
		return err
	})
}

// next waits until an actor stands before a request, whose method it records, or
// has ended.
func (s *harness) next(a *actor) {
	select {
	case a.before = <-a.arrived:
	case <-a.ended:
		a.before = ""
	}
}

// step lets an actor make so many requests.
func (s *harness) step(a *actor, requests int) {
	s.t.Helper()
	for range requests {
		s.answer(a, proceed)
	}
}

// upTo lets an actor make so many requests, or as many as it has, and reports whether it has more.
func (s *harness) upTo(a *actor, requests int) bool {
	s.t.Helper()
	for ; requests > 0 && a.before != ""; requests-- {
		s.step(a, 1)
	}
	return a.before != ""
}

// atEvery calls run with every number of requests that an actor makes before it meets another. run
// reports whether the actor has more. Under the race detector, to which the numbers are alike,
// it calls run with every third.
func atEvery(run func(requests int) (goesOn bool)) {
	for requests := 0; run(requests); requests += race.Or(1, 3) {
	}
}

// atEveryPair calls run with every pair of numbers of requests that two actors make before they
// meet. run reports whether each of them has more. Under the race detector it calls run with
// about every seventh pair.
func atEveryPair(run func(first, second int) (firstGoesOn, secondGoesOn bool)) {
	each := race.Or(1, 7)
	for first, firstGoesOn := 0, true; firstGoesOn; first++ {
		secondGoesOn := true
		for second := (each - first%each) % each; secondGoesOn; second += each {
			firstGoesOn, secondGoesOn = run(first, second)
		}
	}
}

func (s *harness) answer(a *actor, v verdict) {
	s.t.Helper()
	if a.before == "" {
		s.t.Fatalf("%s has ended with %v", a.name, a.err)
	}
	a.verdict <- v
	s.next(a)
}

// stepTo steps an actor until it stands before a request of a method.
func (s *harness) stepTo(a *actor, method string) {
	s.t.Helper()
	for a.before != method {
		s.step(a, 1)
	}
}

// stepToWrite steps a message until it has computed a profile and stands before
// storing it. The message's first MutateRow writes the log.
func (s *harness) stepToWrite(a *actor) {
	s.t.Helper()
	s.stepTo(a, "ReadRows")
	s.stepTo(a, "MutateRow")
}

// finish steps an actor to its end.
func (s *harness) finish(a *actor) {
	s.t.Helper()
	for a.before != "" {
		s.step(a, 1)
	}
	if a.err != nil {
		s.t.Fatalf("%s: %v", a.name, a.err)
	}
}

// kill ends an actor before its next request.
func (s *harness) kill(a *actor) {
	s.t.Helper()
	for a.before != "" {
		s.answer(a, crash)
	}
}

// fold folds all events that are old enough.
func (s *harness) fold() {
	s.t.Helper()
	if done, err := s.neverFolding().Fold(ctx, s.app(), "u"); !done || err != nil {
		s.t.Fatalf("fold: %v, %v", done, err)
	}
}

// applyTo applies events in a process of the test's choice.
func (s *harness) applyTo(e *profile.Engine, events ...store.LogEvent) {
	s.t.Helper()
	_, err := e.Apply(ctx, s.app(), events)
	must.Succeed(s.t, err)
}

// applyFolded applies two events and folds them: one block covers both.
func (s *harness) applyFolded() {
	s.t.Helper()
	s.apply(s.at(1), s.at(5))
	s.fold()
}

// outdate makes the stored profile one of an older strategy, so that a read computes.
func (s *harness) outdate() {
	s.t.Helper()
	s.setStrategy(plainer)
	s.setStrategy(plain)
}

// inBlue is the event with the filters of another catalog.
func inBlue(e store.LogEvent) store.LogEvent {
	e.Counts = []affinity.Count{{Facet: "color", Value: "Blue", N: 1}}
	return e
}

func (s *harness) round(o profile.RecomputeOptions) {
	s.t.Helper()
	if _, err := s.neverFolding().Recompute(ctx, s.app(), store.Range{}, o, func(profile.Progress) error { return nil }); err != nil {
		s.t.Fatal(err)
	}
}

// expect checks that every way to the profile counts so many events.
func (s *harness) expect(events int) {
	s.t.Helper()
	want := 30 * float64(events)
	sets, err := s.eng.Compute(ctx, s.app(), []string{"u"}, affinity.Compile(plain))
	must.Succeed(s.t, err)
	if got := red(profile.Result{Profile: sets["u"][0]}); got != want {
		s.t.Errorf("from blocks and log: %v, want %v", got, want)
	}
	r := s.read("u")
	if red(r) != want {
		s.t.Errorf("read (stored: %v): %v, want %v", r.Stored, red(r), want)
	}
}

func (s *harness) manifest() history.Manifest {
	s.t.Helper()
	row, err := s.store.Users.ReadUser(ctx, appID, "u")
	must.Succeed(s.t, err)
	m, err := history.ParseManifest(row.Manifest)
	must.Succeed(s.t, err)
	return m
}
