package job_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

// open returns the numbers of the first open shards.
func open(t *testing.T, w *jobtest.Harness, limit int) []int {
	t.Helper()
	shards, err := w.Jobs.ShardsIn(t.Context(), jobtest.App, "strategy-1", job.ShardOpen, limit)
	must.Succeed(t, err)
	numbers := make([]int, len(shards))
	for i, s := range shards {
		numbers[i] = s.N
	}
	return numbers
}

// enqueued returns the numbers of the shards whose tasks wait, in their order.
func enqueued(t *testing.T, w *jobtest.Harness) []int {
	t.Helper()
	numbers := []int{}
	for _, k := range w.Waiting() {
		var body struct{ Shard *int }
		must.Succeed(t, json.Unmarshal(k.Body, &body))
		if body.Shard != nil {
			numbers = append(numbers, *body.Shard)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// In any order of the tasks, the first open shards always have one task each,
// and no other shard has a task.
func TestMaxInFlight(t *testing.T) {
	for name, next := range map[string]func(waiting []*jobtest.Task) *jobtest.Task{
		"the oldest first": func(waiting []*jobtest.Task) *jobtest.Task { return waiting[0] },
		"the newest first": func(waiting []*jobtest.Task) *jobtest.Task { return waiting[len(waiting)-1] },
	} {
		for _, inFlight := range []int{1, 2, 3, 4, 100} {
			t.Run(fmt.Sprintf("%s, %d in flight", name, inFlight), func(t *testing.T) {
				w := startedIn(t, inFlight, 11, tight)
				w.Users["e"].Relapses, w.Users["h"].Relapses = 2, 99
				for len(w.Waiting()) > 0 {
					w.DeliverTask(next(w.Waiting()))
					want := open(t, w, inFlight)
					if w.Find("strategy-1").State == job.Planning {
						want = nil
					}
					if got := enqueued(t, w); !slices.Equal(got, want) {
						t.Fatalf("tasks of shards %v, want %v", got, want)
					}
				}
				j := w.WantState("strategy-1", job.Failed, "1 users are still")
				if j.Totals.Done != 3 || j.Totals.Failed != 1 {
					t.Errorf("got %+v, want one shard failed", j.Totals)
				}
			})
		}
	}
}

// Without Concurrency every shard has its task as soon as it is planned.
func TestUnboundedInFlight(t *testing.T) {
	w := started(t, 11, roomy)
	w.DeliverTask(w.Tasks[0])
	if got, want := enqueued(t, w), []int{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("tasks of shards %v, want %v", got, want)
	}
}

// After the queue has lost its tasks, Resume enqueues exactly the tasks of the
// shards in flight.
func TestResumeAfterLostQueue(t *testing.T) {
	for after := range 8 {
		for name, resume := range map[string]func(*jobtest.Harness) error{
			"resumed":       func(w *jobtest.Harness) error { return w.Runner.Resume(t.Context(), jobtest.App) },
			"started again": func(w *jobtest.Harness) error { _, err := w.Runner.Start(t.Context(), draft(0), time.Hour); return err },
		} {
			w := startedIn(t, 2, 11, tight)
			w.DeliverNext(after)
			w.LoseTasks()
			must.Succeed(t, resume(w))
			if got, want := enqueued(t, w), open(t, w, 2); w.Find("strategy-1").State == job.Running && !slices.Equal(got, want) {
				t.Errorf("%s after %d tasks: tasks of shards %v, want %v", name, after, got, want)
			}
			w.Drain()
			w.WantDone("strategy-1")
		}
	}
}
