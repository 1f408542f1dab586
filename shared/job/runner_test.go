package job_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// Two configurations: tasks with enough time, and tasks that run out of time.
var (
	roomy = job.Settings{ShardUsers: 3, Budget: time.Hour, Attempts: 8}
	tight = job.Settings{ShardUsers: 3, Budget: 2 * time.Second, Attempts: 8}
)

// draft is a job for the first strategy.
func draft(inFlight int) job.Job {
	return job.Job{App: jobtest.App, ID: "strategy-1", Concurrency: inFlight, Params: jobtest.Params{Version: 1}}
}

// started returns a harness with a job.
func started(t jobtest.T, users int, cfg job.Settings) *jobtest.Harness {
	t.Helper()
	return startedIn(t, 0, users, cfg)
}

// startedIn is like started, for a job with Concurrency.
func startedIn(t jobtest.T, inFlight, users int, cfg job.Settings) *jobtest.Harness {
	t.Helper()
	w := jobtest.New(t, jobtest.Collection, users, cfg)
	if _, err := w.Runner.Start(t.Context(), draft(inFlight), 0); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestJob(t *testing.T) {
	for name, c := range map[string]struct {
		users, shards int
		cfg           job.Settings
		steps         bool // some shard takes several tasks
	}{
		"no users":               {0, 1, roomy, false},
		"one user":               {1, 1, roomy, false},
		"a shard that is full":   {3, 1, roomy, false},
		"one more":               {4, 2, roomy, false},
		"several shards":         {10, 4, roomy, false},
		"little time":            {10, 4, tight, true},
		"shards of a user each":  {5, 5, job.Settings{ShardUsers: 1, Budget: time.Second, Attempts: 1}, true},
		"less time than a user":  {5, 2, job.Settings{ShardUsers: 3, Budget: 1, Attempts: 1}, true},
		"all users in one shard": {20, 1, job.Settings{ShardUsers: 5000, Budget: 3 * time.Second, Attempts: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, c.users, c.cfg)
			if j := w.Find("strategy-1"); j.State != job.Planning {
				t.Errorf("a new job is %s", j.State)
			}
			w.Drain()
			j := w.WantDone("strategy-1")
			if j.Totals.Shards != c.shards {
				t.Errorf("%d shards, want %d", j.Totals.Shards, c.shards)
			}
			if least := 1 + c.shards; c.users > 0 && c.steps == (len(w.Tasks) == least) || len(w.Tasks) > least && !c.steps {
				t.Errorf("%d tasks for %d shards", len(w.Tasks), c.shards)
			}
		})
	}
}

// A user who arrives after the planning is in a shard, with any token.
func TestNewUsersAreInAShard(t *testing.T) {
	w := started(t, 10, roomy)
	w.DeliverTask(w.Named("strategy-1", -1, 0))
	for _, name := range []string{"A", "cc", "zz"} {
		w.Users[name] = &jobtest.User{Known: true}
	}
	w.Drain()
	w.WantState("strategy-1", job.Done, "")
	for name, u := range w.Users {
		if u.Version != 1 {
			t.Errorf("%s was not processed", name)
		}
	}
}

func TestStartIsIdempotent(t *testing.T) {
	w := started(t, 4, roomy)
	before := w.Find("strategy-1")
	w.Now = w.Now.Add(time.Hour)
	again, err := w.Runner.Start(t.Context(), draft(0), 0)
	jobtest.Same(t, "while it is planned", again, err, before)
	w.Drain()
	done := w.WantDone("strategy-1")
	again, err = w.Runner.Start(t.Context(), draft(0), 0)
	jobtest.Same(t, "once it is done", again, err, done)
	if left := w.Waiting(); len(left) > 0 {
		t.Errorf("a second start created %d tasks", len(left))
	}
}

// A task that is dropped returns the reason and changes nothing.
func TestDroppedTasks(t *testing.T) {
	shard := job.ShardTask{App: jobtest.App, Job: "strategy-1", Shard: 1, From: "d", To: "g"}
	change := func(f func(*job.ShardTask)) job.ShardTask {
		s := shard
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		task any
		want string
	}{
		"unknown job":           {change(func(s *job.ShardTask) { s.Job = "strategy-2" }), "the job is unknown"},
		"job of another app":    {change(func(s *job.ShardTask) { s.App = "other" }), "the job is unknown"},
		"plan of unknown job":   {job.PlanTask{App: jobtest.App, Job: "strategy-2"}, "the job is unknown"},
		"plan of planned job":   {job.PlanTask{App: jobtest.App, Job: "strategy-1"}, "the job is planned"},
		"unknown shard":         {change(func(s *job.ShardTask) { s.Shard = 9 }), "shard 9 is unknown"},
		"another beginning":     {change(func(s *job.ShardTask) { s.From = "" }), "the range is not that of shard 1"},
		"another end":           {change(func(s *job.ShardTask) { s.To = "" }), "the range is not that of shard 1"},
		"another shard's range": {change(func(s *job.ShardTask) { s.Shard = 2 }), "the range is not that of shard 2"},
		"a step to come":        {change(func(s *job.ShardTask) { s.Step = 2 }), "step 2 of shard 1 is not 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, 10, roomy)
			w.DeliverTask(w.Tasks[0])
			w.Gate = func(_ context.Context, what string) jobtest.Fault {
				if strings.HasPrefix(what, "update") || what == "work" || what == "create shard" {
					t.Errorf("%s was called", what)
				}
				return jobtest.None
			}
			var o job.Outcome
			var err error
			switch task := c.task.(type) {
			case job.PlanTask:
				o, err = w.Runner.Plan(t.Context(), task, 0)
			case job.ShardTask:
				o, err = w.Runner.Shard(t.Context(), task, 0)
			}
			if err != nil || !strings.Contains(o.Dropped, c.want) {
				t.Errorf("got %+v, error %v; want it dropped: %s", o, err, c.want)
			}
			w.Gate = nil
			w.Drain()
			w.WantDone("strategy-1")
		})
	}
}

// A task of a job that has ended has no effect.
func TestTasksOfEndedJobs(t *testing.T) {
	for _, state := range []job.State{job.Failed, job.Superseded, job.Cancelled} {
		w := started(t, 10, roomy)
		w.DeliverTask(w.Tasks[0])
		if _, err := w.Jobs.Update(t.Context(), jobtest.App, "strategy-1", func(j *job.Job) error { j.State = state; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, k := range w.Tasks {
			o, err := w.Deliver(t.Context(), k)
			if want := "the job is " + string(state); err != nil || o.Dropped != want {
				t.Errorf("got %+v, error %v; want it dropped: %s", o, err, want)
			}
		}
		for name, u := range w.Users {
			if u.Version != 0 {
				t.Errorf("%s was computed for a job that was %s", name, state)
			}
		}
	}
}

// Late tasks of earlier steps have no effect.
func TestLateTasks(t *testing.T) {
	w := started(t, 10, tight)
	for len(w.Waiting()) > 0 {
		for _, k := range w.Tasks[:len(w.Tasks)-len(w.Waiting())] {
			if o, err := w.Run(t.Context(), k); err != nil || o.Dropped == "" {
				t.Fatalf("late task %s: got %+v, error %v; want it dropped", k.Body, o, err)
			}
		}
		w.DeliverNext(1)
	}
	w.WantDone("strategy-1")
}

func TestFailingShard(t *testing.T) {
	w := started(t, 10, job.Settings{ShardUsers: 3, Budget: time.Hour, Attempts: 3})
	w.Poisoned = "e" // in the second shard
	for _, k := range w.Tasks {
		w.DeliverTask(k)
	}
	poisoned := w.Named("strategy-1", 1, 0)
	for attempt := range 2 {
		if _, err := w.Deliver(t.Context(), poisoned); err == nil {
			t.Errorf("attempt %d succeeded", attempt)
		}
		if s, err := w.Jobs.Shard(t.Context(), jobtest.App, "strategy-1", 1); err != nil || s.State != job.ShardOpen {
			t.Errorf("after attempt %d the shard is %s, error %v", attempt, s.State, err)
		}
	}
	if _, err := w.Deliver(t.Context(), poisoned); err != nil {
		t.Errorf("the last attempt must end the task: %v", err)
	}
	if j := w.Find("strategy-1"); j.State != job.Running || j.Totals.Failed != 1 {
		t.Errorf("it is %s with %d failed shards, want it running for the others", j.State, j.Totals.Failed)
	}
	w.Drain()
	j := w.WantState("strategy-1", job.Failed, "test shard 1 of strategy-1: ")
	if !strings.Contains(j.Error, "the user is poisoned") || j.Totals.Done != 3 || j.Totals.Failed != 1 {
		t.Errorf("got %q, totals %+v", j.Error, j.Totals)
	}
	// What was done of the failed shard counts.
	if j.Totals.Counts["users"] != 8 {
		t.Errorf("%d users visited, want 8: all but e and f", j.Totals.Counts["users"])
	}
}

// A shard whose users crash every process fails too, although no process stores
// an error.
func TestShardThatCrashesItsProcess(t *testing.T) {
	w := started(t, 3, job.Settings{ShardUsers: 3, Budget: time.Hour, Attempts: 2})
	w.DeliverTask(w.Tasks[0])
	died := 0
	w.Gate = func(ctx context.Context, what string) jobtest.Fault {
		if what == "work" {
			died++
			return jobtest.Dies(ctx)
		}
		return jobtest.Alive(ctx)
	}
	w.Drain()
	w.WantState("strategy-1", job.Failed, "ended without an answer")
	if died != 3 {
		t.Errorf("%d attempts, want 2 and a last one", died)
	}
}

func TestFailingPlan(t *testing.T) {
	w := started(t, 3, job.Settings{ShardUsers: 3, Budget: time.Hour, Attempts: 3})
	w.Gate = func(_ context.Context, what string) jobtest.Fault {
		if what == "scan" {
			return jobtest.FailBefore
		}
		return jobtest.None
	}
	w.Drain()
	w.WantState("strategy-1", job.Failed, "plan test strategy-1: scan: an injected fault")
	if w.Tasks[0].Retries != 2 {
		t.Errorf("%d retries, want 2", w.Tasks[0].Retries)
	}
}

// The planning waits until the configuration has propagated.
func TestPlanWaitsForPropagation(t *testing.T) {
	w := jobtest.New(t, jobtest.Collection, 3, roomy)
	set, err := w.Config.App(t.Context(), jobtest.App)
	if err != nil {
		t.Fatal(err)
	}
	at := set.ChangedAt.Add(4 * time.Second)
	w.Clock = func() time.Time { return at }
	if _, err := w.Runner.Start(t.Context(), draft(0), 0); err != nil {
		t.Fatal(err)
	}
	if got := w.Tasks[0].Delay; got != 6*time.Second {
		t.Errorf("planned in %v, want 6s: 10s after the change", got)
	}
	at = at.Add(5 * time.Second) // the queue's clock is ahead
	w.DeliverTask(w.Tasks[0])
	left := w.Waiting()
	if len(left) != 1 || left[0].Delay != time.Second || left[0].Path != w.Runner.Plans().Path {
		t.Fatalf("waiting are %+v, want the planning in 1s", left)
	}
	at = at.Add(time.Second)
	w.Drain()
	w.WantDone("strategy-1")
	if len(w.Tasks) != 3 {
		t.Errorf("%d tasks, want two of planning and a shard's", len(w.Tasks))
	}
}

// A second pass processes users whose profiles an old process overwrote, and
// counts them once.
func TestSecondPass(t *testing.T) {
	for relapses, want := range map[int]struct{ stale, pass int64 }{1: {0, 1}, 3: {0, 3}, 4: {1, 3}, 99: {1, 3}} {
		for name, cfg := range map[string]job.Settings{"roomy": roomy, "tight": tight} {
			t.Run(fmt.Sprint(relapses, name), func(t *testing.T) {
				w := started(t, 5, cfg)
				w.Users["b"].Relapses = relapses
				w.Drain()
				state, text := job.Failed, "1 users are still of another version after 3 more passes"
				if want.stale == 0 {
					w.WantDone("strategy-1")
					state, text = job.Done, ""
				}
				j := w.WantState("strategy-1", state, text)
				if j.Totals.Stale != want.stale || j.Totals.Counts["users"] != 5 || j.Totals.Counts["known"] != 4 {
					t.Errorf("got %+v, want %d stale users", j.Totals, want.stale)
				}
				if s, err := w.Jobs.Shard(t.Context(), jobtest.App, "strategy-1", 0); err != nil || int64(s.Pass) != want.pass {
					t.Errorf("pass %d, error %v; want %d", s.Pass, err, want.pass)
				}
			})
		}
	}
}

// A verification that takes longer than a task goes on in the next one, and counts what all
// of them have found.
func TestSlowVerification(t *testing.T) {
	for _, relapsing := range []int{0, 2} {
		w := started(t, 8, job.Settings{ShardUsers: 100, Budget: 3 * time.Second, Attempts: 1})
		w.VerifyTakes = 2 * time.Second
		for _, name := range w.Within("", "")[:relapsing] {
			w.Users[name].Relapses = 99
		}
		longest, verified := time.Duration(0), 0
		w.Gate = func(_ context.Context, what string) jobtest.Fault {
			if what == "verify" {
				verified++
			}
			return jobtest.None
		}
		for len(w.Waiting()) > 0 {
			begun, task := w.Now, w.Waiting()[0]
			w.DeliverTask(task)
			if task.Path == w.Runner.Shards().Path {
				longest = max(longest, w.Now.Sub(begun))
			}
		}
		state, text := job.Done, ""
		if relapsing > 0 {
			state, text = job.Failed, "2 users are still of another version after 3 more passes"
		}
		j := w.WantState("strategy-1", state, text)
		if j.Totals.Stale != int64(relapsing) || longest > 5*time.Second || verified < 4 {
			t.Errorf("%d relapsing: %d are stale; %d verifications, the longest task took %s; want 4 or more, 5s at most",
				relapsing, j.Totals.Stale, verified, longest)
		}
	}
}

// A task stores at most one checkpoint in CheckpointEvery.
func TestCheckpointsAreRare(t *testing.T) {
	w := started(t, 20, job.Settings{ShardUsers: 100, Budget: time.Hour, Attempts: 1})
	w.Runner.CheckpointEvery, w.Runner.Clock = 5*time.Second, func() time.Time { return w.Now.Add(100 * 365 * 24 * time.Hour) } // a second passes with each user
	writes := 0
	w.Gate = func(_ context.Context, what string) jobtest.Fault {
		if what == "update shard" {
			writes++
		}
		return jobtest.None
	}
	w.Drain()
	w.WantDone("strategy-1")
	if writes != 5 {
		t.Errorf("%d writes of the shard, want 3 checkpoints in 20 s, its end, and that it is verified", writes)
	}
}
