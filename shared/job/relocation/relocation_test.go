package relocation_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/relocation"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/schema"
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
	for tasks := 0; ; tasks++ {
		w := newWorld(t, 0)
		counts := w.populate(8)
		w.start("us")
		for range tasks {
			w.step()
		}
		_, err := w.moves.Undo(ctx, app)
		if refused, ok := errors.AsType[*relocation.Refused](err); ok {
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

// A task dies after any number of requests, five times, and is delivered again.
func TestTasksDie(t *testing.T) {
	for requests := int64(1); requests < 40; requests += 3 {
		w := newWorld(t, 0)
		counts := w.populate(5)
		w.start("us")
		for deaths := map[string]int{}; len(w.tasks) > 0; {
			task := w.tasks[0]
			a := &allowance{}
			a.left.Store(requests * int64(1+deaths[task.Name]))
			if deaths[task.Name] >= 5 {
				a.left.Store(1 << 40)
			}
			err := w.run(context.WithValue(ctx, allowanceKey{}, a), task)
			if err != nil {
				deaths[task.Name]++
				w.exact("after a death", counts)
				continue
			}
			w.tasks = w.tasks[1:]
		}
		if a := w.app(); a.Region != "us" || a.Moving() {
			t.Fatalf("region %q, move %+v", a.Region, a.Move)
		}
		w.exact("moved", counts)
		w.empty("eu")
	}
}

// Each phase waits until nobody acts on the one before: for caches, and for the longest
// request.
func TestPhasesWait(t *testing.T) {
	w := newWorld(t, 10*time.Minute)
	counts := w.populate(3)
	for w.start("us"); len(w.tasks) > 0; {
		phase := w.app().Move.Phase
		for w.ahead = 0; w.ahead < 10*time.Minute; w.ahead += 3 * time.Minute {
			w.step()
			st, err := w.moves.Status(ctx, app)
			w.must(err)
			if st.Move.Phase != phase || st.Job == nil || st.Job.State != job.Planning {
				t.Fatalf("phase %s, %v after it began: phase %s, job %+v", phase, w.ahead, st.Move.Phase, st.Job)
			}
		}
		for w.app().Move.Phase == phase && w.step() {
		}
	}
	w.exact("moved", counts)
}

// restless is the configuration of apps whose strategies change all the time.
type restless struct{ config.Store }

func (r restless) App(ctx context.Context, id string) (config.App, error) {
	app, err := r.Store.App(ctx, id)
	app.ChangedAt = time.Now().Add(24 * time.Hour)
	return app, err
}

// A phase waits for the phase before, and not for changes of the strategy, which may come more
// often than it waits.
func TestPhasesWaitForNothingElse(t *testing.T) {
	w := newWorldOn(t, 10*time.Minute, restless{config.NewMemory()})
	counts := w.populate(3)
	w.start("us")
	for steps := 0; len(w.tasks) > 0; steps++ {
		if w.ahead += 3 * time.Minute; steps > 200 { // ten hours
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
		if r, ok := errors.AsType[*relocation.Refused](err); !ok || !strings.Contains(r.Message, want) {
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
	w.must(w.stores["us"].WriteBlocks(ctx, app, "old", []store.BlockWrite{{ID: history.BlockID{Ticket: 1}, Value: []byte("b")}}))
	_, err = w.moves.Start(ctx, app, "us")
	refused(err, "still holds rows")
	if a := w.app(); a.Moving() {
		t.Errorf("moves: %+v", a.Move)
	}
	w.must(w.stores["us"].DeleteBlocks(ctx, app, "old", []history.BlockID{{Ticket: 1}}))
	w.start("us")
	w.start("us") // resumes
	_, err = w.moves.Start(ctx, app, "eu")
	refused(err, "must arrive, or go back, first")
}
