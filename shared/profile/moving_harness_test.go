package profile_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/store"
)

// travels is a harness of an app that moves between two regions, eu and us. Its own store
// is that of eu, where the app begins.
type travels struct {
	*harness
	us *store.Store
}

func newTravels(t *testing.T) *travels {
	t.Helper()
	tr := &travels{harness: newHarness(t, storetest.NewWithClient)}
	tr.us, _ = storetest.NewWithClient(t, gates()...)
	tr.change(func(a *config.App) error { a.Region = "eu"; return nil })
	tr.eng = tr.process(tr.apps)
	return tr
}

// newMoving makes travels in the phase in which users move. The user has one event.
func newMoving(t *testing.T) *travels {
	t.Helper()
	tr := newTravels(t)
	tr.apply(tr.at(1))
	tr.begin()
	return tr
}

// process returns a process that reaches both regions and takes its configuration from apps.
func (tr *travels) process(apps config.Source) *profile.Engine {
	tr.t.Helper()
	cached, engines := config.NewCached(apps, 0), map[string]*profile.Engine{}
	for region, s := range map[string]*store.Store{"eu": tr.store, "us": tr.us} {
		e := profile.New(s, apps, cached, tr.now, slog.New(slog.DiscardHandler))
		e.SetMaxAdditions(0)
		e.SetLimits(1000, 100, 100, 100, time.Minute)
		engines[region] = e
	}
	must.Succeed(tr.t, profile.Join("eu", engines))
	return engines["eu"]
}

// stuck is a configuration that does not change any more.
type stuck struct {
	*config.Store
	app config.App
}

func (s stuck) App(context.Context, string) (config.App, error) { return s.app, nil }

func (tr *travels) change(change func(*config.App) error) {
	tr.t.Helper()
	if _, err := tr.apps.UpdateMove(ctx, appID, change); err != nil {
		tr.t.Fatal(err)
	}
}

// next begins the next phase of the move.
func (tr *travels) nextPhase() {
	tr.t.Helper()
	tr.change(func(a *config.App) error { a.AdvanceMove(); return nil })
}

// begin begins a move to the other region, up to the phase in which users move.
func (tr *travels) begin() {
	tr.t.Helper()
	to := map[string]string{"eu": "us", "us": "eu"}[tr.app().Region]
	tr.change(func(a *config.App) error { return a.StartMove("move-"+to, to, tr.now()) })
	if row, err := tr.in(tr.app().Region).Users.ReadUser(ctx, appID, "u"); err != nil || row.Exists {
		tr.must(err)
		tr.must(tr.eng.MarkUser(ctx, tr.app(), "u"))
	}
	tr.nextPhase()
}

// undo turns the move back, up to the phase in which users move.
func (tr *travels) undo() {
	tr.t.Helper()
	tr.change((*config.App).UndoMove)
	tr.must(tr.eng.ArriveUser(ctx, tr.app(), "u"))
	tr.nextPhase()
	tr.must(tr.eng.ClearUser(ctx, tr.app(), "u"))
	tr.nextPhase()
	tr.nextPhase()
	tr.must(tr.eng.StayUser(ctx, tr.app(), "u"))
}

func (tr *travels) must(err error) {
	tr.t.Helper()
	must.Succeed(tr.t, err)
}

// endless is an instant that no test reaches.
var endless = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// moveUser moves the user.
func (tr *travels) moveUser() {
	tr.t.Helper()
	_, err := tr.eng.MoveUser(ctx, tr.app(), "u", endless)
	tr.must(err)
}

// switched makes the region to which the app moves its own.
func (tr *travels) switched() {
	tr.t.Helper()
	tr.nextPhase()
}

// end drops and erases what the app leaves behind, and ends the move.
func (tr *travels) end() {
	tr.t.Helper()
	app := tr.app()
	from := tr.in(app.Move.From)
	tr.nextPhase() // the drop
	_, err := tr.eng.DropUser(ctx, tr.app(), "u")
	tr.must(err)
	for _, table := range []string{store.TableUsers, store.TableEvents, store.TableEventsNarrow, store.TableHistories} {
		tr.must(from.Rows.DeleteRows(ctx, store.AppRows{App: appID, Table: table}, func(int, string) error { return nil }))
	}
	for tr.app().Moving() {
		tr.nextPhase()
	}
}

// expectMoved ends the move, after which the user has so many events.
func (tr *travels) expectMoved(events int) {
	tr.t.Helper()
	tr.switched()
	tr.end()
	tr.expect(events)
}

// expectBlue checks that the one event counts with its later filter, blue, alone.
func (tr *travels) expectBlue() {
	tr.t.Helper()
	got := tr.read("u")
	if red(got) != 0 || scoreOf(got.Profile, "blue") != 30 {
		tr.t.Errorf("red %v and blue %v, want 0 and 30", red(got), scoreOf(got.Profile, "blue"))
	}
}

// turnBack begins the way back, and the phase after the arrivals.
func (tr *travels) turnBack() {
	tr.t.Helper()
	tr.change((*config.App).UndoMove)
	tr.nextPhase()
}

func (tr *travels) in(region string) *store.Store {
	if region == "us" {
		return tr.us
	}
	return tr.store
}

func (tr *travels) owner(region string) store.Owner {
	tr.t.Helper()
	return tr.row(region).Owner
}

func (tr *travels) row(region string) store.User {
	tr.t.Helper()
	row, err := tr.in(region).Users.ReadUser(ctx, appID, "u")
	tr.must(err)
	return row
}

// actors, which know the configuration of their start.

func (tr *travels) message(events ...store.LogEvent) *actor {
	return tr.messageUnder(tr.app(), events...)
}

func (tr *travels) messageUnder(app config.App, events ...store.LogEvent) *actor {
	e := tr.process(stuck{tr.apps, app})
	return tr.start("message", func(ctx context.Context) error {
		_, err := e.Apply(ctx, app, events)
		return err
	})
}

func (tr *travels) mover() *actor {
	app, e := tr.app(), tr.process(tr.apps)
	return tr.start("mover", func(ctx context.Context) error {
		_, err := e.MoveUser(ctx, app, "u", endless)
		return err
	})
}

// moverAt is a mover that has given the row in eu a state.
func (tr *travels) moverAt(s store.OwnerState) *actor {
	tr.t.Helper()
	m := tr.mover()
	tr.stepToOwner(m, "eu", s)
	return m
}

func (tr *travels) deletion() *actor {
	e := tr.process(stuck{tr.apps, tr.app()})
	return tr.start("deletion", func(ctx context.Context) error {
		_, err := e.Delete(ctx, appID, "u")
		return err
	})
}

// reader reads as a process that knows app, and returns what it answered.
func (tr *travels) reader(app config.App) (*actor, *profile.Result) {
	e, result := tr.process(stuck{tr.apps, app}), &profile.Result{}
	return tr.start("reader", func(ctx context.Context) (err error) {
		*result, err = e.Read(ctx, app, "u", 0)
		return err
	}), result
}

// stepToOwner steps an actor until a region has a state of the owner's in its row.
func (tr *travels) stepToOwner(a *actor, region string, s store.OwnerState) {
	tr.t.Helper()
	for tr.owner(region).State != s {
		tr.step(a, 1)
	}
}

// expectUnder checks that a process that knows app counts so many events.
func (tr *travels) expectUnder(app config.App, events int) {
	tr.t.Helper()
	got, err := tr.process(stuck{tr.apps, app}).Read(ctx, app, "u", 0)
	tr.must(err)
	if red(got) != 30*float64(events) {
		tr.t.Errorf("region %s, births in %s: read (stored: %v) %v, want %v", app.Region, app.Births(), got.Stored, red(got), 30*events)
	}
}
