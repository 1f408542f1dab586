package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// setMoving begins or ends the move of the harness's app.
func setMoving(t *testing.T, w *jobtest.Harness, moving bool) {
	t.Helper()
	_, err := w.Config.UpdateMove(t.Context(), jobtest.App, func(a *config.App) error {
		if a.Region, a.Move = "eu", (config.Move{}); moving {
			return a.StartMove("move-1", "us", jobtest.Noon)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// While its app moves, a job waits at whatever task it is: it asks once a minute, uses up no
// attempt, and works on nobody. Then it goes on.
func TestJobWaitsWhileAppMoves(t *testing.T) {
	for tasks := range 4 { // delivered before the move
		w := startedIn(t, 2, 11, tight)
		clock := time.Now().Add(time.Hour) // the configuration has propagated
		w.Clock = func() time.Time { return clock }
		w.DeliverNext(tasks)
		setMoving(t, w, true)
		worked := w.Find("strategy-1").Totals.Counts["users"]
		for range 5 * w.Runner.Attempts {
			o, err := w.Deliver(t.Context(), w.Waiting()[0])
			if err != nil || !strings.Contains(o.Next, "step") {
				t.Fatalf("after %d tasks: %+v, %v", tasks, o, err)
			}
			if last := w.Tasks[len(w.Tasks)-1]; last.Delay != time.Minute {
				t.Fatalf("after %d tasks: the next task %s runs in %v, want a minute", tasks, last.Path, last.Delay)
			}
			clock = clock.Add(time.Minute)
		}
		if j := w.Find("strategy-1"); j.State.Ended() || j.Totals.Counts["users"] != worked {
			t.Fatalf("after %d tasks: the job is %s and has visited %d users, %d before the move", tasks, j.State, j.Totals.Counts["users"], worked)
		}
		setMoving(t, w, false)
		w.Drain()
		w.WantDone("strategy-1")
	}
}

// A job of the move itself works while the app moves.
func TestJobOfMoveDoesNotWait(t *testing.T) {
	w := startedIn(t, 2, 5, tight)
	w.Runner.DuringMoves = true
	setMoving(t, w, true)
	at := time.Now().Add(time.Hour)
	w.Clock = func() time.Time { return at }
	w.Drain()
	if j := w.Find("strategy-1"); j.State != job.Done {
		t.Errorf("the job is %s", j.State)
	}
}
