package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/cloudtasks/apiv2/cloudtaskspb"

	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/emulator"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/store"
)

// inOrder is a queue that keeps its tasks in order and runs one at a time.
type inOrder struct {
	tasks []queue.Task
	names map[string]bool
}

func (q *inOrder) Create(_ context.Context, t queue.Task) error {
	if !q.names[t.Name] {
		q.names[t.Name] = true
		q.tasks = append(q.tasks, t)
	}
	return nil
}

// next delivers the oldest task to the worker.
func (q *inOrder) next(t *testing.T, worker http.Handler) {
	t.Helper()
	if len(q.tasks) == 0 {
		t.Fatal("no task waits")
	}
	task := q.tasks[0]
	q.tasks = q.tasks[1:]
	w := httptest.NewRecorder()
	worker.ServeHTTP(w, httptest.NewRequest(http.MethodPost, task.Path, strings.NewReader(string(task.Body))))
	if w.Code != http.StatusOK {
		t.Fatalf("task %s: %d %s", task.Body, w.Code, w.Body)
	}
}

// A recompute of another app that is asked for after a large one ends before it, on
// a queue that runs its tasks one by one. Without a limit it would wait for all shards
// of the large one.
func TestRecomputePassesALargeOne(t *testing.T) {
	const users = 20
	s := start(t, stack.Options{ConfigTTL: time.Millisecond, Recompute: job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 3}})
	seen(t, s, "demo", "demokey", users)
	seen(t, s, "other", "otherkey", 2)
	runner := s.Backends.Recompute
	for concurrency, passes := range map[int]bool{2: true, 8: true, 0: false} {
		t.Run(fmt.Sprint(concurrency, " at a time"), func(t *testing.T) {
			q := &inOrder{names: map[string]bool{}}
			runner.Queue, runner.Concurrency = q, concurrency
			work := worker.New(s.Backends.ForWorker())
			large := manual(t, runner, "demo")
			find := func(j job.Job) job.Job {
				t.Helper()
				j, err := runner.Find(t.Context(), j.App, j.ID)
				must.Succeed(t, err)
				return j
			}
			for find(large).State == job.Planning {
				q.next(t, work)
			}
			small := manual(t, runner, "other")
			for !find(small).State.Ended() {
				q.next(t, work)
			}
			if got := find(small); got.State != job.Done || got.Totals.Counts["users"] != 2 {
				t.Errorf("the small recompute: %+v, want it done", got)
			}
			if got := find(large); got.State.Ended() == passes {
				t.Errorf("the large recompute is %s with %d of %d shards when the small one ends", got.State, got.Totals.Done, users)
			}
			for !find(large).State.Ended() {
				q.next(t, work)
			}
			if got := find(large); got.State != job.Done || got.Totals.Counts["users"] != users {
				t.Errorf("the large recompute: %+v, want it done", got)
			}
		})
	}
}

func manual(t *testing.T, r *recompute.Runner, app string) job.Job {
	t.Helper()
	j, err := r.StartManual(t.Context(), app, recompute.Options{})
	must.Succeed(t, err)
	return j
}

// seen sends an event of each of some users of an app.
func seen(t *testing.T, s *stack.Stack, app, key string, users int) {
	t.Helper()
	var events []string
	for i := range users {
		events = append(events, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"u%d","filters":["color:Red"]}`, i))
	}
	wantStatusAs(t, s, http.StatusOK, app, key, "POST", "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	idle(t, s)
}

// heldEngine holds the recomputes of an app until the test opens the gate.
type heldEngine struct {
	recompute.Engine
	app     string
	reached chan struct{}
	open    chan struct{}
}

func (e heldEngine) Recompute(ctx context.Context, a config.App, users store.Range, o profile.RecomputeOptions,
	progress func(profile.Progress) error) (profile.Progress, error) {
	if a.ID == e.app {
		e.reached <- struct{}{}
		select {
		case <-e.open:
		case <-ctx.Done():
			return profile.Progress{}, ctx.Err()
		}
	}
	return e.Engine.Recompute(ctx, a, users, o, progress)
}

// A deleted user's events are purged while a recompute of another app holds every
// place of the worker's queue: purges have a queue of their own.
func TestPurgePassesRecomputes(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond, Recompute: job.Settings{ShardUsers: 1, Budget: time.Minute, Attempts: 3}})
	held := heldEngine{s.Backends.Profiles, "demo", make(chan struct{}, stack.TasksAtOnce+3), make(chan struct{})}
	s.Backends.Recompute.Work = recompute.Work{Engine: held}
	seen(t, s, "demo", "demokey", stack.TasksAtOnce+3)
	seen(t, s, "other", "otherkey", 1)
	large := manual(t, s.Backends.Recompute, "demo")
	for range stack.TasksAtOnce {
		<-held.reached
	}
	wantStatusAs(t, s, http.StatusOK, "other", "otherkey", "DELETE", "/1/profiles/u0", "")
	at := place(t, s)
	list := &cloudtaskspb.ListTasksRequest{Parent: "projects/" + stack.Project + "/locations/local/queues/" + queue.PurgesID}
	client := cloudtaskspb.NewCloudTasksClient(dial(t, at.Tasks, emulator.WithToken(at.Token)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		tasks, err := client.ListTasks(ctx, list)
		if err != nil {
			t.Fatal(errors.Join(errors.New("the purge has not ended"), err))
		}
		// The purge ends with the task of the last one, which is due much later.
		if left := tasks.GetTasks(); len(left) == 1 && time.Until(left[0].GetScheduleTime().AsTime()) > time.Minute {
			break
		}
	}
	close(held.open)
	idle(t, s)
	if j, err := s.Backends.Recompute.Find(t.Context(), "demo", large.ID); err != nil || j.State != job.Done {
		t.Errorf("the recompute is %s, %v; want it done", j.State, err)
	}
}
