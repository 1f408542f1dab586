package jobtest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/queue"
)

// Task is one in the queue.
type Task struct {
	queue.Task
	Retries int
	Over    bool
}

// Deliver carries a task out once. A task that succeeds is over.
func (w *World) Deliver(ctx context.Context, k *Task) (job.Outcome, error) {
	o, err := w.Run(Process(ctx), k)
	if err != nil {
		k.Retries++
	} else {
		k.Over = true
	}
	return o, err
}

// Run carries a task out and leaves it as it is.
func (w *World) Run(ctx context.Context, k *Task) (job.Outcome, error) {
	if k.Path == w.Runner.PlanPath() {
		t, err := job.DecodePlan(k.Body)
		if err != nil {
			w.T.Fatal(err)
		}
		return w.Runner.Plan(ctx, t, k.Retries)
	}
	t, err := job.DecodeShard(k.Body)
	if err != nil || k.Path != w.Runner.ShardPath() {
		w.T.Fatalf("task of %s: %v", k.Path, err)
	}
	return w.Runner.Shard(ctx, t, k.Retries)
}

// Waiting returns the tasks that are not over.
func (w *World) Waiting() []*Task {
	return slices.DeleteFunc(slices.Clone(w.Tasks), func(k *Task) bool { return k.Over })
}

// Drain delivers tasks, the oldest first, until none is left.
func (w *World) Drain() {
	w.T.Helper()
	for n := 0; ; n++ {
		left := w.Waiting()
		if len(left) == 0 {
			return
		}
		if n == 10_000 {
			w.T.Fatalf("after %d deliveries there are still %d tasks, the first %s", n, len(left), left[0].Body)
		}
		_, _ = w.Deliver(w.T.Context(), left[0]) // an error has it come again
	}
}

// LoseTasks empties the queue, which forgets the names of what was in it too.
func (w *World) LoseTasks() { w.Tasks, w.names = nil, map[string]bool{} }

type taskBody struct {
	App, Job string
	Shard    *int
	Step     int
}

func (w *World) body(k queue.Task) taskBody {
	w.T.Helper()
	var body taskBody
	if err := json.Unmarshal(k.Body, &body); err != nil || k.Name == "" {
		w.T.Errorf("malformed task %q: %s: %v", k.Name, k.Body, err)
	}
	return body
}

// Named returns the task of a shard and step, or of planning where shard is -1.
func (w *World) Named(id string, shard, step int) *Task {
	w.T.Helper()
	for _, k := range w.Tasks {
		body := w.body(k.Task)
		minusOne := -1
		if body.Job == id && *cmp.Or(body.Shard, &minusOne) == shard && body.Step == step {
			return k
		}
	}
	w.T.Fatalf("no task of shard %d, step %d of %s", shard, step, id)
	return nil
}

type gatedQueue struct{ *World }

func (w gatedQueue) Create(ctx context.Context, k queue.Task) error {
	return w.Call(ctx, "queue", func() error {
		w.keepsLane(ctx, w.body(k))
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.names[k.Name] {
			w.names[k.Name] = true
			w.Tasks = append(w.Tasks, &Task{Task: k})
		}
		return nil
	})
}

// keepsLane checks that a task's shard, if it is open, is one of those that may
// have tasks.
func (w *World) keepsLane(ctx context.Context, body taskBody) {
	j, err := w.Jobs.Job(ctx, body.App, body.Job)
	if err != nil {
		w.T.Errorf("task of an unknown job: %v", err)
	}
	if body.Shard == nil || j.Lanes == 0 {
		return
	}
	s, err := w.Jobs.Shard(ctx, body.App, body.Job, *body.Shard)
	if err != nil {
		w.T.Errorf("task of an unknown shard: %v", err)
	}
	open, err := w.Jobs.ShardsIn(ctx, body.App, body.Job, job.ShardOpen, j.Lanes)
	if err != nil {
		w.T.Error(err)
	}
	if s.State == job.ShardOpen && !slices.ContainsFunc(open, func(o job.Shard) bool { return o.N == s.N }) {
		w.T.Errorf("shard %d of %s has a task, out of its %d lanes", s.N, j.ID, j.Lanes)
	}
}
