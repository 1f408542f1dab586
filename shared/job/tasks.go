package job

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/queue"
)

// Plans is the kind of the runner's plan tasks.
func (r *Runner) Plans() queue.Kind[PlanTask] {
	return queue.Kind[PlanTask]{What: r.Name + " plan", Path: "/" + r.Name + "/plan"}
}

// Shards is the kind of the runner's shard tasks.
func (r *Runner) Shards() queue.Kind[ShardTask] {
	return queue.Kind[ShardTask]{What: r.Name + " shard", Path: "/" + r.Name + "/shard"}
}

// PlanTask is the body of the task that cuts a job into shards.
type PlanTask struct {
	App  string `json:"app"`
	Job  string `json:"job"`
	Step int    `json:"step"`
}

// ShardTask is the body of a task that works on a shard.
type ShardTask struct {
	App   string `json:"app"`
	Job   string `json:"job"`
	Shard int    `json:"shard"`
	Part  string `json:"part,omitempty"`
	From  string `json:"from"`
	To    string `json:"to"`
	Step  int    `json:"step"`
}

// Fault implements queue.Request.
func (t PlanTask) Fault() string {
	if !config.ValidAppID(t.App) || !validID(t.Job) || t.Step < 0 {
		return "app, job and step must be present and well-formed"
	}
	return ""
}

// Fault implements queue.Request.
func (t ShardTask) Fault() string {
	if !config.ValidAppID(t.App) || !validID(t.Job) || t.Shard < 0 || t.Step < 0 {
		return "app, job, shard and step must be present and well-formed"
	}
	return ""
}

// enqueuePlanStep enqueues the current plan task.
func (r *Runner) enqueuePlanStep(ctx context.Context, job Job, delay time.Duration) error {
	task, err := r.Plans().Task(job.App, PlanTask{job.App, job.ID, job.PlanStep}, delay,
		r.Name+"-plan", job.App, job.ID, strconv.Itoa(job.PlanStep))
	if err != nil {
		return err
	}
	return r.Queue.Create(ctx, task)
}

// enqueueShard enqueues the current task of a shard.
func (r *Runner) enqueueShard(ctx context.Context, job Job, s Shard) error {
	delay := time.Duration(0)
	if !s.NotBefore.IsZero() {
		delay = max(0, s.NotBefore.Sub(r.Clock()))
	}
	task, err := r.Shards().Task(job.App, ShardTask{job.App, job.ID, s.N, s.Part, s.From, s.To, s.Step}, delay,
		r.Name+"-shard", job.App, job.ID, strconv.Itoa(s.N), strconv.Itoa(s.Step))
	if err != nil {
		return err
	}
	task.Region = s.Region // the body names users who live there
	return r.Queue.Create(ctx, task)
}

// Resume enqueues the tasks that the unfinished jobs of an app wait for, in case
// the queue has lost them.
func (r *Runner) Resume(ctx context.Context, app string) error {
	jobs, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return fmt.Errorf("resume %s jobs: %w", r.Name, err)
	}
	for _, job := range jobs {
		if err := r.ResumeJob(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// ResumeJob enqueues the tasks that a job waits for, in case the queue has lost
// them. The queue ignores a task whose name it still knows.
func (r *Runner) ResumeJob(ctx context.Context, job Job) error {
	switch {
	case job.State.Ended():
		return r.close(ctx, job)
	case job.State == Planning:
		app, err := r.Config.App(ctx, job.App)
		if err != nil {
			return fmt.Errorf("resume %s %s: %w", r.Name, job.ID, err)
		}
		return r.enqueuePlanStep(ctx, job, r.unpropagated(app))
	case job.Concurrency == 0: // otherwise finish enqueues them
		open, err := r.Jobs.ShardsIn(ctx, job.App, job.ID, ShardOpen, maxResumedShards)
		if err != nil {
			return r.endLost(ctx, job, fmt.Errorf("resume %s %s: %w", r.Name, job.ID, err))
		}
		if err := r.enqueueShards(ctx, job, open); err != nil {
			return err
		}
	}
	return r.finish(ctx, job.App, job.ID)
}

// enqueueShards enqueues the tasks of open shards. The queue ignores tasks that
// it has already.
func (r *Runner) enqueueShards(ctx context.Context, job Job, open []Shard) error {
	for _, shard := range open {
		if err := r.enqueueShard(ctx, job, shard); err != nil {
			return fmt.Errorf("enqueue shard %d of %s: %w", shard.N, job.ID, err)
		}
	}
	return nil
}

// maxResumedShards bounds how many shards one ResumeJob enqueues.
const maxResumedShards = 1000

// Outcome is the result of a task that need not be retried.
type Outcome struct {
	// Dropped is why the task had no effect.
	Dropped string `json:"dropped,omitempty"`
	// Next says what continues the task's work, or that the work is complete.
	Next string `json:"next,omitempty"`
}

// drop logs why a task has no effect, and returns the reason as its outcome.
func (r *Runner) drop(ctx context.Context, app, job, format string, args ...any) Outcome {
	o := Outcome{Dropped: fmt.Sprintf(format, args...)}
	r.Log.LogAttrs(ctx, slog.LevelInfo, r.Name+" task dropped", slog.String("app", app),
		slog.String(r.Name, job), slog.String("reason", o.Dropped))
	return o
}

// maxErrorText is how many bytes of an error text a job or shard keeps.
const maxErrorText = 500

func errorText(err error) string { return truncate(err.Error()) }

// truncate returns the first maxErrorText bytes of a text, as valid UTF-8,
// which Firestore requires.
func truncate(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
}
