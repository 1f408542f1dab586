package profile_test

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// regional is what a simulation with two regions has besides: eu, with the store of the
// simulation, and us.
type regional struct {
	us       *store.Store // nil: there are no regions
	usClient *bigtable.Client
	moves    int
	waited   bool // nobody acts on a configuration before the newest
	worked   bool // the work of the phase is done
	// resident: the user has a region of their own. rememberers remember where that was.
	resident    bool
	rememberers []*profile.Engine
}

// TestModelOfMoves is TestModel with an app that moves between two regions, and back,
// while processes are at work that know an older configuration. It runs half as many
// histories.
func TestModelOfMoves(t *testing.T) {
	eu, euClient := storetest.NewWithClient(t, gates()...)
	us, usClient := storetest.NewDeployed(t, gates()...)
	var histories atomic.Int64
	must.Succeed(t, flag.Set("rapid.checks", fmt.Sprint((*campaign+1)/2)))
	rapid.Check(t, func(t *rapid.T) {
		w := newRegional(t, eu, us, euClient, usClient, fmt.Sprint("moved", histories.Add(1)))
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			w.regionalStep()
		}
		w.finishRegional()
	})
}

func newRegional(t *rapid.T, eu, us *store.Store, euClient, usClient *bigtable.Client, appID string) *simulation {
	w := newSimulation(t, eu, euClient, appID)
	w.us, w.usClient = us, usClient
	if _, err := w.apps.UpdateMove(ctx, appID, func(a *config.App) error { a.Region = "eu"; return nil }); err != nil {
		t.Fatal(err)
	}
	w.changed()
	w.expire()
	w.engine = w.processAt(0)
	return w
}

// joined makes the engines of a process that reaches both regions.
func (w *simulation) joined(open func(*store.Store, *config.Cached) *profile.Engine) *profile.Engine {
	cached := config.NewCached(w.cache(), 0)
	eu, us := open(w.store, cached), open(w.us, cached)
	must.Succeed(w.t, profile.Join("eu", map[string]*profile.Engine{"eu": eu, "us": us}))
	eu.InRegion(rapid.SampledFrom([]string{"eu", "us"}).Draw(w.t, "region of the process"))
	return eu
}

// known returns a configuration that a process may know now.
func (w *simulation) known() config.App {
	return w.configs[rapid.IntRange(w.floor, len(w.configs)-1).Draw(w.t, "configuration")]
}

// in returns the store of a region.
func (w *simulation) in(region string) *store.Store {
	if region == "us" {
		return w.us
	}
	return w.store
}

// home returns the store with the row of the user that counts.
func (w *simulation) home() *store.Store {
	if w.us == nil {
		return w.store
	}
	eu, us := w.rowIn("eu"), w.rowIn("us")
	switch {
	case eu.Owner.Here() && us.Owner.Here():
		w.t.Fatalf("two regions own the user: eu %v, us %v", eu.Owner, us.Owner)
	case eu.Owner.Here():
		return w.store
	case us.Owner.Here():
		return w.us
	case eu.Owner.Epoch > us.Owner.Epoch:
		return w.store // the other row does not count yet
	case us.Owner.Epoch > eu.Owner.Epoch:
		return w.us
	}
	return w.in(w.app().Region)
}

func (w *simulation) rowIn(region string) store.User {
	row, err := w.in(region).Users.ReadUser(ctx, w.appID, "u")
	must.Succeed(w.t, err)
	return row
}

func (w *simulation) regionalStep() {
	kinds := []string{"advance", "advance", "advance", "advance", "advance", "advance", "advance", "advance", "message", "message", "redeliver",
		"import", "abandon", "read", "rank", "stored", "delete", "opt out", "opt in", "restore", "purge", "strategy", "minutes", "window", "marked", "pack", "pack", "move", "move", "move", "move"}
	switch kind := rapid.SampledFrom(kinds).Draw(w.t, "step"); kind {
	case "move":
		w.move()
	case "abandon":
		e := w.process()
		w.startOnEvents("abandon", e.Abandon)
	case "stored":
		app, e := w.known(), w.process()
		w.start("stored", func(ctx context.Context) error {
			return e.ReadStored(ctx, app, []string{"u"}, func(string, []byte) error { return nil })
		})
	default:
		w.stepOf(kind, w.known())
	}
}

// startOnEvents starts a process on events that were sent before.
func (w *simulation) startOnEvents(name string, do func(context.Context, config.App, []store.LogEvent) error) {
	if len(w.pending) == 0 {
		return
	}
	m := w.pending[rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "message")]
	events, app := w.eventsOf(&m), w.known()
	w.start(name, func(ctx context.Context) error { return do(ctx, app, events) })
}

// settleAll waits as a job does before it begins a phase: caches have expired, and who began
// earlier has ended or sends nothing more.
func (w *simulation) settleAll() {
	w.expire()
	for len(w.working) > 0 {
		i := rapid.IntRange(0, len(w.working)-1).Draw(w.t, "actor")
		w.advance(i, rapid.SampledFrom([]verdict{proceed, proceed, proceed, proceed, proceed, crash}).Draw(w.t, "verdict"))
	}
	w.waited = true
}

// move takes the next step of a move: the wait, the work of the phase, or the next phase. Now
// and then it turns the move back.
func (w *simulation) move() {
	app := w.app()
	switch {
	case app.Moving() && rapid.IntRange(0, 11).Draw(w.t, "undo") == 0 && app.UndoMove() == nil:
		w.changeMove((*config.App).UndoMove)
	case !app.Moving():
		w.moves++
		to := map[string]string{"eu": "us", "us": "eu"}[app.Region]
		w.changeMove(func(a *config.App) error {
			return a.StartMove(fmt.Sprint("move-", w.moves), to, time.UnixMilli(w.clock.Load()))
		})
	case !w.waited:
		w.settleAll()
	case w.worked:
		w.changeMove(func(a *config.App) error { a.AdvanceMove(); return nil })
	default:
		w.startWork(app)
	}
}

func (w *simulation) changeMove(change func(*config.App) error) {
	if _, err := w.apps.UpdateMove(ctx, w.appID, change); err != nil {
		w.t.Fatal(err)
	}
	w.changed()
	w.waited, w.worked = false, false
}

// startWork starts a process on the work of a phase. Several may run.
func (w *simulation) startWork(app config.App) {
	m := app.Move
	exists := func(region string) bool { return w.rowIn(region).Exists }
	e, id := w.process(), len(w.configs)
	w.start("work of phase "+string(m.Phase), func(ctx context.Context) error {
		var err error
		switch m.Phase {
		case config.MoveMarking:
			if exists(app.Region) {
				err = e.MarkUser(ctx, app, "u")
			}
		case config.MoveArriving:
			if exists(m.To) {
				err = e.ArriveUser(ctx, app, "u")
			}
		case config.MoveClearing:
			if exists(m.To) {
				err = e.ClearUser(ctx, app, "u")
			}
		case config.MoveUsers:
			if err = e.StayUser(ctx, app, "u"); err == nil {
				_, err = e.MoveUser(ctx, app, "u", endless)
			}
		case config.MoveDropping:
			if m.Back {
				if err = e.StayUser(ctx, app, "u"); err == nil {
					_, err = e.MoveUser(ctx, app, "u", endless)
				}
			}
			if err != nil {
				return err
			}
			if _, err = e.ReconcileUser(ctx, app, "u"); err == nil {
				_, err = e.DropUser(ctx, app, "u")
			}
		case config.MoveErasing:
			w.erase(m.From)
		}
		if err == nil && id == len(w.configs) {
			w.worked = true
		}
		return err
	})
}

// erase deletes what a region still holds. It checks that no row of it counts.
func (w *simulation) erase(region string) {
	if o := w.rowIn(region).Owner; o.Here() {
		w.t.Fatalf("%s is erased, and owns the user: %v", region, o)
	}
	for _, table := range []string{store.TableUsers, store.TableEvents, store.TableEventsNarrow, store.TableHistories} {
		must.Succeed(w.t, w.in(region).Rows.DeleteRows(ctx, store.AppRows{App: w.appID, Table: table}, func(int, string) error { return nil }))
	}
}

// finishRegional ends all processes, and the move, and compares profiles with the log.
func (w *simulation) finishRegional() {
	w.settleMessages()
	for steps := 0; w.app().Moving(); steps++ {
		if steps > 100 {
			w.t.Fatalf("the move does not end: %+v", w.app().Move)
		}
		w.move()
		w.drain()
		w.exact("in phase " + string(w.app().Move.Phase))
	}
	w.settleAll()
	w.check("moved")
	w.exact("moved")
	w.checkElsewhereEmpty()
	if _, err := w.engine.Recompute(ctx, w.app(), store.Range{}, profile.RecomputeOptions{Maintain: true}, func(profile.Progress) error { return nil }); err != nil {
		w.t.Fatal(err)
	}
	w.exact("after a recompute")
}

// checkElsewhereEmpty checks that only the region of the app holds anything of it.
func (w *simulation) checkElsewhereEmpty() { w.checkOnlyIn(w.app().Region) }

func (w *simulation) checkOnlyIn(region string) {
	other := map[string]string{"eu": "us", "us": "eu"}[region]
	s := w.in(other)
	if row := w.rowIn(other); row.Exists {
		w.t.Fatalf("%s still has the row of the user: %+v", other, row)
	}
	for _, n := range schema.Names {
		all := []store.UserRange{{User: "u", To: history.End}}
		err := s.Events.ReadLog(ctx, w.appID, schema.Of(n), all, func(_ string, r store.LogRow) error {
			return fmt.Errorf("%s still has the event %v", other, r.Pos)
		})
		must.Succeed(w.t, err)
	}
}
