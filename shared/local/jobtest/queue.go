package jobtest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/queue"
)

// Task is a task in the queue.
type Task struct {
	queue.Task
	Retries int
	Over    bool
}

// Deliver runs a task once. A task that succeeds is over.
func (h *Harness) Deliver(ctx context.Context, k *Task) (job.Outcome, error) {
	o, err := h.Run(Process(ctx), k)
	if err != nil {
		k.Retries++
	} else {
		k.Over = true
	}
	return o, err
}

// DeliverNext delivers the first task that waits, as often as the test says. Each delivery must succeed.
func (h *Harness) DeliverNext(times int) {
	h.T.Helper()
	for range times {
		h.DeliverTask(h.Waiting()[0])
	}
}

// DeliverTask delivers a task, which must succeed.
func (h *Harness) DeliverTask(k *Task) {
	h.T.Helper()
	_, err := h.Deliver(h.T.Context(), k)
	must.Succeed(h.T, err)
}

// Run runs a task and leaves it in the queue.
func (h *Harness) Run(ctx context.Context, k *Task) (job.Outcome, error) {
	if k.Path == h.Runner.Plans().Path {
		t, err := h.Runner.Plans().Decode(k.Body)
		must.Succeed(h.T, err)
		return h.Runner.Plan(ctx, t, k.Retries)
	}
	t, err := h.Runner.Shards().Decode(k.Body)
	if err != nil || k.Path != h.Runner.Shards().Path {
		h.T.Fatalf("task of %s: %v", k.Path, err)
	}
	return h.Runner.Shard(ctx, t, k.Retries)
}

// Waiting returns the tasks that are not over.
func (h *Harness) Waiting() []*Task {
	return slices.DeleteFunc(slices.Clone(h.Tasks), func(k *Task) bool { return k.Over })
}

// Drain delivers tasks, the oldest first, until no task is left.
func (h *Harness) Drain() {
	h.T.Helper()
	for n := 0; ; n++ {
		left := h.Waiting()
		if len(left) == 0 {
			return
		}
		if n == 10_000 {
			h.T.Fatalf("after %d deliveries there are still %d tasks, the first %s", n, len(left), left[0].Body)
		}
		_, _ = h.Deliver(h.T.Context(), left[0]) // after an error it is delivered again
	}
}

// LoseTasks empties the queue, and frees the names of its tasks.
func (h *Harness) LoseTasks() { h.Tasks, h.names = nil, map[string]bool{} }

type taskBody struct {
	App, Job string
	Shard    *int
	Step     int
}

func (h *Harness) body(k queue.Task) taskBody {
	h.T.Helper()
	var body taskBody
	if err := json.Unmarshal(k.Body, &body); err != nil || k.Name == "" {
		h.T.Errorf("malformed task %q: %s: %v", k.Name, k.Body, err)
	}
	return body
}

// Named returns the task of a shard and step, or of planning if shard is -1.
func (h *Harness) Named(id string, shard, step int) *Task {
	h.T.Helper()
	for _, k := range h.Tasks {
		body := h.body(k.Task)
		minusOne := -1
		if body.Job == id && *cmp.Or(body.Shard, &minusOne) == shard && body.Step == step {
			return k
		}
	}
	h.T.Fatalf("no task of shard %d, step %d of %s", shard, step, id)
	return nil
}

type gatedQueue struct{ *Harness }

func (w gatedQueue) Create(ctx context.Context, k queue.Task) error {
	return w.Call(ctx, "queue", func() error {
		w.checkInFlight(ctx, w.body(k))
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.names[k.Name] {
			w.names[k.Name] = true
			w.Tasks = append(w.Tasks, &Task{Task: k})
		}
		return nil
	})
}

// checkInFlight checks that the shard of a task, if it is open, is one of those
// that may have tasks.
func (h *Harness) checkInFlight(ctx context.Context, body taskBody) {
	j, err := h.Jobs.Job(ctx, body.App, body.Job)
	if err != nil {
		h.T.Errorf("task of an unknown job: %v", err)
	}
	if body.Shard == nil || j.Concurrency == 0 {
		return
	}
	s, err := h.Jobs.Shard(ctx, body.App, body.Job, *body.Shard)
	if err != nil {
		h.T.Errorf("task of an unknown shard: %v", err)
	}
	open, err := h.Jobs.ShardsIn(ctx, body.App, body.Job, job.ShardOpen, j.Concurrency)
	if err != nil {
		h.T.Error(err)
	}
	if s.State == job.ShardOpen && !slices.ContainsFunc(open, func(o job.Shard) bool { return o.N == s.N }) {
		h.T.Errorf("shard %d of %s has a task beyond the %d in flight", s.N, j.ID, j.Concurrency)
	}
}
