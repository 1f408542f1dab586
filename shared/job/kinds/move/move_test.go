package move_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// An app moves to the other region and back, and every profile is exact after each task.
func TestMove(t *testing.T) {
	w := newWorld(t, 0)
	counts := w.populate(20)
	for _, to := range []string{"us", "eu"} {
		from := map[string]string{"us": "eu", "eu": "us"}[to]
		w.start(to)
		var phases []config.MovePhase
		for w.step() {
			w.exact("moving", counts)
			if p := w.app().Move.Phase; len(phases) == 0 || phases[len(phases)-1] != p {
				phases = append(phases, p)
			}
		}
		want := "[mark users switch drop erase finish ]"
		if got := fmt.Sprint(phases); got != want {
			t.Errorf("phases %s, want %s", got, want)
		}
		if a := w.app(); a.Region != to || a.Moving() {
			t.Fatalf("region %q, move %+v", a.Region, a.Move)
		}
		w.exact("in "+to, counts)
		w.empty(from)
		_, err := w.engine.Recompute(ctx, w.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
		w.must(err)
		w.exact("recomputed in "+to, counts)
	}
	if w.arrived != 2 {
		t.Errorf("the app arrived %d times, want 2", w.arrived)
	}
}

// A move turns back after any of its tasks, up to the drop, and leaves nothing behind.
func TestUndo(t *testing.T) {
	race.Skip(t, "TestMoveUnderLoad has the same goroutines")
	for tasks := 0; ; tasks++ {
		w := newWorld(t, 0)
		counts := w.populate(8)
		w.start("us")
		for range tasks {
			w.step()
		}
		_, err := w.moves.Undo(ctx, app)
		if refused, ok := errors.AsType[*move.Refused](err); ok {
			if p := w.app().Move.Phase; p == config.MoveUsers || p == config.MoveSwitched || p == config.MoveMarking {
				t.Errorf("in phase %s: %v", p, refused)
			}
			if tasks < 5 {
				t.Errorf("refused after %d tasks", tasks)
			}
			return
		}
		w.must(err)
		for w.step() {
			w.exact(fmt.Sprint("undone after task ", tasks), counts)
		}
		if a := w.app(); a.Region != "eu" || a.Moving() {
			t.Fatalf("undone after %d tasks: region %q, move %+v", tasks, a.Region, a.Move)
		}
		w.empty("us")
		w.start("us") // a move like any other
		for w.step() {
		}
		w.exact("moved after all", counts)
		w.empty("eu")
	}
}

var everyRequest = flag.Bool("every-request", false, "let tasks die at each single request of a move, and not at some")

// A task dies after any number of its requests, five times, and is delivered again. Every
// profile is exact after each death. With -every-request that is each task of a move and each
// number, so that it dies between any two requests.
func TestTasksDie(t *testing.T) {
	race.Skip(t, "TestMoveUnderLoad has the same goroutines")
	var requests []int64 // of each task, in a move without deaths
	w, counts := beginMove(t)
	for len(w.tasks) > 0 {
		a := &allowance{}
		a.left.Store(1 << 40)
		w.must(w.run(context.WithValue(ctx, allowanceKey{}, a), w.tasks[0]))
		w.tasks = w.tasks[1:]
		requests = append(requests, 1<<40-a.left.Load())
	}
	w.exact("moved", counts)
	stride, deaths, n := 11, 0, 0
	if *everyRequest {
		stride = 1
	}
	for task, most := range requests {
		for after := range most {
			if n++; n%stride == 0 {
				// Each in a test of its own, which closes its Bigtables.
				t.Run(fmt.Sprintf("task %d, request %d", task, after), func(t *testing.T) { deaths += dieAt(t, task, after) })
			}
		}
	}
	t.Logf("%d tasks with %d requests, %d deaths", len(requests), n, deaths)
	if deaths < n/stride {
		t.Errorf("%d deaths at %d requests", deaths, n/stride)
	}
}

// beginMove returns a world in which an app begins to move, and the events of its users.
func beginMove(t *testing.T) (*world, map[string]int) {
	t.Helper()
	w := newWorld(t, 0)
	counts := w.populate(3)
	w.start("us")
	return w, counts
}

// dieAt makes a move whose task of a number dies five times after so many requests. It
// returns the number of deaths.
func dieAt(t *testing.T, number int, requests int64) (deaths int) {
	w, counts := beginMove(t)
	for i := 0; len(w.tasks) > 0; i++ {
		task := w.tasks[0]
		for range 5 {
			if i != number {
				break
			}
			a := &allowance{}
			a.left.Store(requests)
			if err := w.run(context.WithValue(ctx, allowanceKey{}, a), task); err == nil {
				break
			}
			deaths++
			w.exact(fmt.Sprintf("after death %d of task %d behind request %d", deaths, number, requests), counts)
		}
		w.must(w.run(ctx, task))
		w.tasks = w.tasks[1:]
	}
	if a := w.app(); a.Region != "us" || a.Moving() {
		t.Fatalf("task %d, request %d: region %q, move %+v", number, requests, a.Region, a.Move)
	}
	w.exact("moved", counts)
	w.empty("eu")
	return deaths
}

// Each phase waits until nobody acts on the one before: for caches, and for the longest
// request.
func TestPhasesWait(t *testing.T) {
	w := newWorld(t, 10*time.Minute)
	counts := w.populate(3)
	for w.start("us"); len(w.tasks) > 0; {
		phase := w.app().Move.Phase
		for w.ahead.ns.Store(0); w.ahead.get() < 10*time.Minute; w.ahead.add(3 * time.Minute) {
			w.step()
			st, err := w.moves.Status(ctx, app)
			w.must(err)
			if st.Move.Phase != phase || st.Job == nil || st.Job.State != job.Planning {
				t.Fatalf("phase %s, %v after it began: phase %s, job %+v", phase, w.ahead.get(), st.Move.Phase, st.Job)
			}
		}
		for w.app().Move.Phase == phase && w.step() {
		}
	}
	w.exact("moved", counts)
}

// restless is the configuration of apps whose strategies change all the time.
type restless struct{ *config.Store }

func (r restless) App(ctx context.Context, id string) (config.App, error) {
	app, err := r.Store.App(ctx, id)
	app.ChangedAt = time.Now().Add(24 * time.Hour)
	return app, err
}

// A phase waits for the phase before, and not for changes of the strategy, which may come more
// often than it waits.
func TestPhasesWaitForNothingElse(t *testing.T) {
	s := config.NewMemory()
	w := newWorldOn(t, 10*time.Minute, s, restless{s})
	counts := w.populate(3)
	w.start("us")
	for steps := 0; len(w.tasks) > 0; steps++ {
		if w.ahead.add(3 * time.Minute); steps > 200 { // ten hours
			t.Fatalf("the move stands still: %+v", w.app().Move)
		}
		w.step()
	}
	if a := w.app(); a.Moving() || a.Region != "us" {
		t.Errorf("the app is in %q, %+v", a.Region, a.Move)
	}
	w.exact("moved", counts)
}

// What cannot be done now is refused with what comes first, and changes nothing.
func TestRefused(t *testing.T) {
	w := newWorld(t, 0)
	refused := func(err error, want string) {
		t.Helper()
		if r, ok := errors.AsType[*move.Refused](err); !ok || !strings.Contains(r.Message, want) {
			t.Errorf("%v, want it to be refused with %q", err, want)
		}
	}
	_, err := w.moves.Start(ctx, app, "mars")
	refused(err, "the regions are eu, us")
	_, err = w.moves.Start(ctx, app, "eu")
	refused(err, "in region eu already")
	_, err = w.moves.Undo(ctx, app)
	refused(err, "does not move")
	_, err = w.apps.UpdateLog(ctx, app, func(a *config.App) error { a.Log.Write = schema.Names; return nil })
	w.must(err)
	_, err = w.moves.Start(ctx, app, "us")
	refused(err, "migrates to another schema")
	_, err = w.apps.UpdateLog(ctx, app, func(a *config.App) error { a.Log = schema.Default(); return nil })
	w.must(err)
	w.must(w.stores["us"].Histories.WriteBlocks(ctx, app, "old", []store.BlockWrite{{ID: history.BlockID{Ticket: 1}, Value: []byte("b")}}))
	_, err = w.moves.Start(ctx, app, "us")
	refused(err, "still holds rows")
	if a := w.app(); a.Moving() {
		t.Errorf("moves: %+v", a.Move)
	}
	w.must(w.stores["us"].Histories.DeleteBlocks(ctx, app, "old", []history.BlockID{{Ticket: 1}}))
	w.start("us")
	w.start("us") // resumes
	_, err = w.moves.Start(ctx, app, "eu")
	refused(err, "must arrive, in 0s or more, or go back, first; --wait of its move waits for the end")
}

// A deployment that lacks a region which an app needs refuses to begin, to resume and to turn
// back, and says what comes first.
func TestRefusedWithoutItsRegion(t *testing.T) {
	w := newWorld(t, 0)
	refused := func(_ any, err error) {
		t.Helper()
		if r, ok := errors.AsType[*move.Refused](err); !ok || !strings.Contains(r.Message, `which this deployment does not have: add it to the regions`) {
			t.Errorf("%v", err)
		}
	}
	eu := w.stores["eu"]
	delete(w.stores, "eu")
	refused(w.moves.Start(ctx, app, "us"))
	refused(w.moves.Estimate(ctx, app, "us"))
	w.stores["eu"] = eu
	w.start("us")
	w.until(config.MoveUsers)
	delete(w.stores, "eu")
	refused(w.moves.Start(ctx, app, "us"))
	refused(w.moves.Undo(ctx, app))
	if w.app().Move.Back {
		t.Error("the move has turned back")
	}
	w.stores["eu"] = eu
	_, err := w.moves.Undo(ctx, app)
	w.must(err)
	delete(w.stores, "us")
	refused(w.moves.Undo(ctx, app))
}

// A move that turns back at once ends where it began. Who asks for the move again learns
// that it is not under way.
func TestUndoAtOnceIsNoMoveToTheOtherRegion(t *testing.T) {
	w := newWorld(t, 0)
	counts := w.populate(3)
	w.start("us")
	_, err := w.moves.Undo(ctx, app)
	w.must(err)
	_, err = w.moves.Start(ctx, app, "us")
	if r, ok := errors.AsType[*move.Refused](err); !ok || !strings.Contains(r.Message, "App shop goes back from us to eu, phase finish: it must arrive first") {
		t.Errorf("%v", err)
	}
	w.start("eu") // resumes
	w.rest("eu")
	w.exact("back", counts)
	w.start("us")
	w.rest("us")
}

// The queue loses every task. What resumes moves finds what each waits for: its job, the end of
// a phase, or its first task. A job that has failed waits for an operator.
func TestResumeFindsWhatIsLost(t *testing.T) {
	w := newWorld(t, 0)
	counts := w.populate(3)
	w.must(w.moves.Resume(ctx, app)) // nothing moves
	w.start("us")
	lose := func() {
		t.Helper()
		w.tasks, w.names = nil, map[string]bool{}
		w.must(w.moves.Resume(ctx, app))
	}
	for n := int64(0); w.app().Moving(); n++ {
		if lose(); !w.app().Moving() {
			break // only the end of the last phase was lost
		}
		if len(w.tasks) == 0 || n > 1000 {
			t.Fatalf("nobody goes on with %+v", w.app().Move)
		}
		a := &allowance{} // the task dies, and is lost too
		a.left.Store(n % 100)
		_ = w.run(context.WithValue(ctx, allowanceKey{}, a), w.tasks[0])
	}
	w.rest("us")
	w.exact("moved", counts)

	w.start("eu")
	id := w.app().Move.Job
	_, err := w.moves.Cancel(ctx, app, id)
	w.must(err)
	if lose(); len(w.tasks) > 0 || w.app().Move.Job != id {
		t.Errorf("a job that has ended otherwise is followed by %q", w.app().Move.Job)
	}
	w.start("eu")
	w.rest("eu")
}
