package recompute_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/recompute"
)

// Roomy and tight ways to cut the work up.
var (
	roomy = recompute.Config{ShardUsers: 3, Budget: time.Hour, Attempts: 8}
	tight = recompute.Config{ShardUsers: 3, Budget: 2 * time.Second, Attempts: 8}
)

// started is a world with a job for its strategy.
func started(t tester, users int, cfg recompute.Config) *world {
	t.Helper()
	w := newWorld(t, users, cfg)
	if _, err := w.runner.StartStrategy(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestRecompute(t *testing.T) {
	for name, c := range map[string]struct {
		users, shards int
		cfg           recompute.Config
		steps         bool // some task has to leave the rest to another
	}{
		"no users":               {0, 1, roomy, false},
		"one user":               {1, 1, roomy, false},
		"a shard that is full":   {3, 1, roomy, false},
		"one more":               {4, 2, roomy, false},
		"several shards":         {10, 4, roomy, false},
		"little time":            {10, 4, tight, true},
		"shards of a user each":  {5, 5, recompute.Config{ShardUsers: 1, Budget: time.Second, Attempts: 1}, true},
		"less time than a user":  {5, 2, recompute.Config{ShardUsers: 3, Budget: 1, Attempts: 1}, true},
		"all users in one shard": {20, 1, recompute.Config{ShardUsers: 5000, Budget: 3 * time.Second, Attempts: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, c.users, c.cfg)
			if j := w.find("strategy-1"); j.State != recompute.Planning {
				t.Errorf("a new job is %s", j.State)
			}
			w.drain()
			j := w.wantDone("strategy-1")
			if j.Totals.Shards != c.shards {
				t.Errorf("%d shards, want %d", j.Totals.Shards, c.shards)
			}
			if least := 1 + c.shards; c.users > 0 && c.steps == (len(w.tasks) == least) || len(w.tasks) > least && !c.steps {
				t.Errorf("%d tasks for %d shards", len(w.tasks), c.shards)
			}
		})
	}
}

// A user who comes after the planning is in a shard, wherever he sorts.
func TestUsersWhoComeLater(t *testing.T) {
	w := started(t, 10, roomy)
	if _, err := w.deliver(t.Context(), w.named("strategy-1", -1, 0)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"A", "cc", "zz"} {
		w.users[name] = &user{known: true}
	}
	w.drain()
	w.wantState("strategy-1", recompute.Done, "")
	for name, u := range w.users {
		if u.version != 1 {
			t.Errorf("%s was left out", name)
		}
	}
}

func TestStartingAgainChangesNothing(t *testing.T) {
	w := started(t, 4, roomy)
	before := w.find("strategy-1")
	w.now = w.now.Add(time.Hour)
	again, err := w.runner.StartStrategy(t.Context(), app)
	same(t, "while it is planned", again, err, before)
	w.drain()
	done := w.wantDone("strategy-1")
	again, err = w.runner.StartStrategy(t.Context(), app)
	same(t, "once it is done", again, err, done)
	if left := w.waiting(); len(left) > 0 {
		t.Errorf("%d tasks were made again", len(left))
	}
}

// Tasks that have no effect say why and leave everything as it is.
func TestDroppedTasks(t *testing.T) {
	shard := recompute.ShardTask{App: app, Job: "strategy-1", Shard: 1, From: "d", To: "g"}
	change := func(f func(*recompute.ShardTask)) recompute.ShardTask {
		s := shard
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		task any
		want string
	}{
		"unknown job":           {change(func(s *recompute.ShardTask) { s.Job = "strategy-2" }), "the job is unknown"},
		"job of another app":    {change(func(s *recompute.ShardTask) { s.App = "other" }), "the job is unknown"},
		"plan of unknown job":   {recompute.PlanTask{App: app, Job: "strategy-2"}, "the job is unknown"},
		"plan of planned job":   {recompute.PlanTask{App: app, Job: "strategy-1"}, "the job is planned"},
		"unknown shard":         {change(func(s *recompute.ShardTask) { s.Shard = 9 }), "shard 9 is unknown"},
		"another beginning":     {change(func(s *recompute.ShardTask) { s.From = "" }), "the range is not that of shard 1"},
		"another end":           {change(func(s *recompute.ShardTask) { s.To = "" }), "the range is not that of shard 1"},
		"another shard's range": {change(func(s *recompute.ShardTask) { s.Shard = 2 }), "the range is not that of shard 2"},
		"a step to come":        {change(func(s *recompute.ShardTask) { s.Step = 2 }), "step 2 of shard 1 is not 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, 10, roomy)
			if _, err := w.deliver(t.Context(), w.tasks[0]); err != nil {
				t.Fatal(err)
			}
			w.gate = func(_ context.Context, what string) fault {
				if strings.HasPrefix(what, "update") || what == "engine" || what == "create shard" {
					t.Errorf("%s was called", what)
				}
				return none
			}
			var o recompute.Outcome
			var err error
			switch task := c.task.(type) {
			case recompute.PlanTask:
				o, err = w.runner.Plan(t.Context(), task, 0)
			case recompute.ShardTask:
				o, err = w.runner.Shard(t.Context(), task, 0)
			}
			if err != nil || !strings.Contains(o.Dropped, c.want) {
				t.Errorf("got %+v, error %v; want it dropped: %s", o, err, c.want)
			}
			w.gate = nil
			w.drain()
			w.wantDone("strategy-1")
		})
	}
}

// A task of a job that has ended has no effect, whatever the end.
func TestTasksOfJobsThatHaveEnded(t *testing.T) {
	for _, state := range []recompute.State{recompute.Failed, recompute.Superseded, recompute.Cancelled} {
		w := started(t, 10, roomy)
		if _, err := w.deliver(t.Context(), w.tasks[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.jobs.Update(t.Context(), app, "strategy-1", func(j *recompute.Job) error { j.State = state; return nil }); err != nil {
			t.Fatal(err)
		}
		for _, k := range w.tasks {
			o, err := w.deliver(t.Context(), k)
			if want := "the job is " + string(state); err != nil || o.Dropped != want {
				t.Errorf("got %+v, error %v; want it dropped: %s", o, err, want)
			}
		}
		for name, u := range w.users {
			if u.version != 0 {
				t.Errorf("%s was computed for a job that was %s", name, state)
			}
		}
	}
}

// Late tasks of steps that are over have no effect.
func TestLateTasks(t *testing.T) {
	w := started(t, 10, tight)
	for len(w.waiting()) > 0 {
		for _, k := range w.tasks[:len(w.tasks)-len(w.waiting())] {
			if o, err := w.run(t.Context(), k); err != nil || o.Dropped == "" {
				t.Fatalf("late task %s: got %+v, error %v; want it dropped", k.Body, o, err)
			}
		}
		if _, err := w.deliver(t.Context(), w.waiting()[0]); err != nil {
			t.Fatal(err)
		}
	}
	w.wantDone("strategy-1")
}

func TestFailingShard(t *testing.T) {
	w := started(t, 10, recompute.Config{ShardUsers: 3, Budget: time.Hour, Attempts: 3})
	w.poisoned = "e" // of the second shard
	for _, k := range w.tasks {
		if _, err := w.deliver(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	poisoned := w.named("strategy-1", 1, 0)
	for attempt := range 2 {
		if _, err := w.deliver(t.Context(), poisoned); err == nil {
			t.Errorf("attempt %d succeeded", attempt)
		}
		if s, err := w.jobs.Shard(t.Context(), app, "strategy-1", 1); err != nil || s.State != recompute.ShardOpen {
			t.Errorf("after attempt %d the shard is %s, error %v", attempt, s.State, err)
		}
	}
	if _, err := w.deliver(t.Context(), poisoned); err != nil {
		t.Errorf("the last attempt must end the task: %v", err)
	}
	if j := w.find("strategy-1"); j.State != recompute.Running || j.Totals.Failed != 1 {
		t.Errorf("it is %s with %d failed shards, want it running for the others", j.State, j.Totals.Failed)
	}
	w.drain()
	j := w.wantState("strategy-1", recompute.Failed, "recompute shard 1 of strategy-1: ")
	if !strings.Contains(j.Error, "the user is poisoned") || j.Totals.Done != 3 || j.Totals.Failed != 1 {
		t.Errorf("got %q, totals %+v", j.Error, j.Totals)
	}
	// What it has done of the shard counts.
	if j.Totals.Visited != 8 {
		t.Errorf("%d users visited, want 8: all but e and f", j.Totals.Visited)
	}
}

// A shard whose users bring down every process that works on it fails too, though
// none of them lives to tell.
func TestShardThatEndsItsProcess(t *testing.T) {
	w := started(t, 3, recompute.Config{ShardUsers: 3, Budget: time.Hour, Attempts: 2})
	if _, err := w.deliver(t.Context(), w.tasks[0]); err != nil {
		t.Fatal(err)
	}
	died := 0
	w.gate = func(ctx context.Context, what string) fault {
		if what == "engine" {
			died++
			return dies(ctx)
		}
		return alive(ctx)
	}
	w.drain()
	w.wantState("strategy-1", recompute.Failed, "ended without an answer")
	if died != 3 {
		t.Errorf("%d attempts, want 2 and a last one", died)
	}
}

func TestPlanThatFails(t *testing.T) {
	w := started(t, 3, recompute.Config{ShardUsers: 3, Budget: time.Hour, Attempts: 3})
	w.gate = func(_ context.Context, what string) fault {
		if what == "scan" {
			return failBefore
		}
		return none
	}
	w.drain()
	w.wantState("strategy-1", recompute.Failed, "plan recompute strategy-1: scan: an injected fault")
	if w.tasks[0].retries != 2 {
		t.Errorf("%d retries, want 2", w.tasks[0].retries)
	}
}

// Planning waits until the configuration is in force everywhere.
func TestPlanThatComesTooEarly(t *testing.T) {
	w := newWorld(t, 3, roomy)
	set, err := w.apps.App(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	at := set.ChangedAt.Add(4 * time.Second)
	w.clock = func() time.Time { return at }
	if _, err := w.runner.StartStrategy(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if got := w.tasks[0].Delay; got != 6*time.Second {
		t.Errorf("planned in %v, want 6s: 10s after the change", got)
	}
	at = at.Add(5 * time.Second) // the queue's clock is ahead
	if _, err := w.deliver(t.Context(), w.tasks[0]); err != nil {
		t.Fatal(err)
	}
	left := w.waiting()
	if len(left) != 1 || left[0].Delay != time.Second || left[0].Path != recompute.PlanPath {
		t.Fatalf("waiting are %+v, want the planning in 1s", left)
	}
	at = at.Add(time.Second)
	w.drain()
	w.wantDone("strategy-1")
	if len(w.tasks) != 3 {
		t.Errorf("%d tasks, want two of planning and a shard's", len(w.tasks))
	}
}

// Users whose profiles were overwritten under an old configuration are gone
// through again, and count once.
func TestSecondPass(t *testing.T) {
	for relapses, want := range map[int]struct{ stale, pass int64 }{1: {0, 1}, 3: {0, 3}, 4: {1, 3}, 99: {1, 3}} {
		for name, cfg := range map[string]recompute.Config{"roomy": roomy, "tight": tight} {
			t.Run(fmt.Sprint(relapses, name), func(t *testing.T) {
				w := started(t, 5, cfg)
				w.users["b"].relapses = relapses
				w.drain()
				state, text := recompute.Failed, "1 users still carry another strategy version"
				if want.stale == 0 {
					w.wantDone("strategy-1")
					state, text = recompute.Done, ""
				}
				j := w.wantState("strategy-1", state, text)
				if j.Totals.Stale != want.stale || j.Totals.Visited != 5 || j.Totals.Users != 4 {
					t.Errorf("got %+v, want %d stale users", j.Totals, want.stale)
				}
				if s, err := w.jobs.Shard(t.Context(), app, "strategy-1", 0); err != nil || int64(s.Pass) != want.pass {
					t.Errorf("pass %d, error %v; want %d", s.Pass, err, want.pass)
				}
			})
		}
	}
}

// Checkpoints are kept to one in a while.
func TestCheckpointsAreRare(t *testing.T) {
	w := started(t, 20, recompute.Config{ShardUsers: 100, Budget: time.Hour, Attempts: 1})
	w.runner.Checkpointing(5*time.Second, func() time.Time { return w.now.Add(100 * 365 * 24 * time.Hour) }) // a second goes by with each user
	writes := 0
	w.gate = func(_ context.Context, what string) fault {
		if what == "update shard" {
			writes++
		}
		return none
	}
	w.drain()
	w.wantDone("strategy-1")
	if writes != 5 {
		t.Errorf("%d writes of the shard, want 3 checkpoints in 20 s, its end, and that it is verified", writes)
	}
}
