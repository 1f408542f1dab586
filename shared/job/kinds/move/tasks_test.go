package move_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// The queue may deliver the task of an earlier phase once more when the app has arrived.
func TestLateTasksDoNothing(t *testing.T) {
	w := newWorld(t, 0)
	counts := w.populate(2)
	w.start("us")
	var late []queue.Task
	for len(w.tasks) > 0 {
		if w.app().Move.Phase != config.MoveFinishing {
			late = append(late, w.tasks[0])
		}
		w.step()
	}
	was := w.app().Move
	for _, task := range late {
		w.must(w.run(ctx, task))
	}
	if w.app().Move != was || w.arrived != 1 || len(w.tasks) > 0 {
		t.Errorf("%d late tasks: %+v, arrived %d times, %d tasks", len(late), w.app().Move, w.arrived, len(w.tasks))
	}
	w.start("eu")
	was = w.app().Move
	for _, task := range late {
		w.must(w.run(ctx, task))
	}
	if w.app().Move != was || len(w.tasks) != 1 {
		t.Errorf("during the next move: %+v, %d tasks", w.app().Move, len(w.tasks))
	}
	for w.step() {
	}
	w.exact("in eu", counts)
	w.empty("us")
}

// A task whose time is over leaves the rest of its group to the next one, and so does a
// verification, so that a slow region makes a move slow, and never stops it.
func TestSlowTasksTakeOneUserEach(t *testing.T) {
	w := newWorld(t, 0)
	counts := w.populate(10)
	w.slow = true
	w.start("us")
	tasks := map[config.MovePhase]int{}
	for w.step() {
		tasks[w.app().Move.Phase]++
	}
	w.slow = false
	for _, phase := range []config.MovePhase{config.MoveMarking, config.MoveUsers, config.MoveDropping} {
		if tasks[phase] < 20 {
			t.Errorf("%d tasks in phase %s, want two or more for each of 10 users", tasks[phase], phase)
		}
	}
	w.exact("in us", counts)
	w.empty("eu")
}

// A user with many events moves in several tasks, each of which goes on where the one before ended. The
// other users of the shard move with them.
func TestLongLogMovesInSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("-short moves no long log")
	}
	w := newWorld(t, 0)
	counts := w.populate(2) // who have 3 events
	const many = 45_000
	w.importMany("user00+", many)
	counts["user00+"] = many
	w.slow = true
	w.start("us")
	tasks, rows := 0, int64(0)
	for w.app().Move.Phase != config.MoveSwitched && w.step() {
		if w.app().Move.Phase == config.MoveUsers {
			tasks++
		}
		if j, err := w.moves.Find(ctx, app, w.app().Move.Job); err == nil && j.Kind == string(config.MoveUsers) {
			rows = j.Totals.Counts["rows"]
		}
	}
	w.slow = false
	w.exact("moved", counts)
	if want := int64(many + 3); rows != want || tasks < 4 {
		t.Errorf("%d tasks copied %d rows; want 4 or more tasks, and each of %d rows once", tasks, rows, want)
	}
	for w.step() {
	}
	w.exact("in us", counts)
	w.empty("eu")
}
