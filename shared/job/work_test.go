package job_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// hopeless is work whose verification fails.
type hopeless struct{ job.Work }

func (hopeless) Verify(context.Context, job.Job, config.App, job.Shard, time.Time) (job.Verified, error) {
	return job.Verified{}, fmt.Errorf("the second table is gone: %w", job.ErrFailed)
}

// ErrFailed fails the shard at its first attempt. The shard keeps its counts,
// and the other shards continue.
func TestErrFailedIsNotRetried(t *testing.T) {
	for name, c := range map[string]struct {
		setUp   func(*jobtest.Harness)
		why     string
		failed  int
		visited int64
		faulty  int64
	}{
		"in a sweep": {func(w *jobtest.Harness) {
			w.Users["d"].Fault, w.Poisoned = "bent", "f" // both in the second shard
			w.Poison = fmt.Errorf("the history is not JSON: %w", job.ErrFailed)
		}, "test shard 1 of strategy-1: the history is not JSON", 1, 9, 1},
		"in a verification": {func(w *jobtest.Harness) { w.Runner.Work = hopeless{w.Runner.Work} }, "the second table is gone", 4, 10, 0},
	} {
		for _, every := range []time.Duration{-1, time.Hour} {
			t.Run(fmt.Sprint(name, every), func(t *testing.T) {
				w := startedIn(t, 1, 10, roomy)
				w.Runner.CheckpointEvery = every // an hour: the last progress is not stored yet
				c.setUp(w)
				for len(w.Waiting()) > 0 {
					if _, err := w.Deliver(t.Context(), w.Waiting()[0]); err != nil {
						t.Fatalf("a task is retried: %v", err)
					}
				}
				j := w.WantState("strategy-1", job.Failed, c.why)
				if j.Totals.Failed != c.failed || j.Totals.Done != 4-c.failed || j.Totals.Counts["users"] != c.visited || j.Totals.Counts["faulty"] != c.faulty {
					t.Errorf("got %+v, want %d shards failed, %d users visited, %d faulty", j.Totals, c.failed, c.visited, c.faulty)
				}
				if len(w.Tasks) != 5 {
					t.Errorf("%d tasks, want one of planning and one a shard", len(w.Tasks))
				}
			})
		}
	}
}

// A shard lists its first faults, over all of its steps, and counts all of
// them.
func TestFaults(t *testing.T) {
	const users = 26
	for name, cfg := range map[string]job.Settings{
		"in one step":   {ShardUsers: users, Budget: time.Hour, Attempts: 1},
		"in many steps": {ShardUsers: users, Budget: 3 * time.Second, Attempts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, users, cfg)
			var want []string
			for i, name := range w.Within("b", "") {
				w.Users[name].Fault = "bent"
				if i < job.MaxFaults {
					want = append(want, name+": bent")
				}
			}
			w.Users["c"].Relapses = 1 // a user who is processed again is faulty once
			w.Drain()
			j := w.WantCurrent("strategy-1")
			if j.Totals.Counts["faulty"] != users-1 || j.Totals.Counts["written"] != users {
				t.Errorf("got %+v, want %d faulty", j.Totals, users-1)
			}
			got, err := w.Jobs.Faults(t.Context(), jobtest.App, "strategy-1", 1000)
			jobtest.Same(t, "faults", got, err, want)
		})
	}
}

// A store can keep any text of a fault or an error.
func TestFaultTextsAreStorable(t *testing.T) {
	w := started(t, 6, job.Settings{ShardUsers: 3, Budget: time.Hour, Attempts: 1})
	w.Users["b"].Fault = strings.Repeat("ä", 1000)
	w.Users["c"].Fault = "the byte \xff"
	w.Poisoned, w.Poison = "e", errors.New(strings.Repeat("ö", 1000)+"\xff")
	w.Drain()
	j := w.WantState("strategy-1", job.Failed, "test shard 1 of strategy-1: ö")
	faults, err := w.Jobs.Faults(t.Context(), jobtest.App, "strategy-1", 10)
	if err != nil || len(faults) != 2 || faults[1] != "c: the byte " {
		t.Errorf("got %q, error %v", faults, err)
	}
	for _, text := range slices.Concat(faults, []string{j.Error}) {
		if len(text) > 500 || !utf8.ValidString(text) {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// A second start enqueues the tasks that the job waits for, and does not change
// an ended job.
func TestStartResumes(t *testing.T) {
	w := started(t, 10, tight)
	for n := 0; ; n++ {
		before := w.Find("strategy-1")
		before.Totals = job.Totals{}
		w.LoseTasks()
		w.Now = w.Now.Add(time.Minute)
		again := draft(3)
		again.Kind = "another"
		got, err := w.Runner.Start(t.Context(), again, 0)
		if got.State.Ended() {
			got.Totals = job.Totals{}
		}
		jobtest.Same(t, "existing job", got, err, before)
		left := w.Waiting()
		if before.State.Ended() {
			if len(left) > 0 || n < 5 {
				t.Errorf("%d tasks wait after %d starts", len(left), n)
			}
			break
		}
		if len(left) == 0 {
			t.Fatalf("nothing waits, and the job is %s", before.State)
		}
		w.DeliverTask(left[0])
	}
	w.WantDone("strategy-1")
}

// A job that was cancelled before its shards ended gets no tasks.
func TestStartOfCancelledJob(t *testing.T) {
	for _, inFlight := range []int{0, 2} {
		w := startedIn(t, inFlight, 10, roomy)
		w.DeliverTask(w.Tasks[0])
		if _, err := w.Runner.Cancel(t.Context(), jobtest.App, "strategy-1"); err != nil {
			t.Fatal(err)
		}
		w.LoseTasks()
		j, err := w.Runner.Start(t.Context(), draft(inFlight), 0)
		if err != nil || j.State != job.Cancelled || len(w.Tasks) > 0 {
			t.Errorf("%s, error %v, %d tasks; want the job unchanged", j.State, err, len(w.Tasks))
		}
	}
}

// A job is planned after the delay, or once the configuration has propagated if
// that is later. An app that does not exist gets no job.
func TestStartDelay(t *testing.T) {
	for name, c := range map[string]struct{ delay, since, want time.Duration }{
		"at once":           {0, time.Hour, 0},
		"after a while":     {time.Minute, time.Hour, time.Minute},
		"after the change":  {time.Second, 4 * time.Second, 6 * time.Second},
		"after both, later": {time.Minute, 4 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobtest.New(t, jobtest.Collection, 3, roomy)
			app, err := w.Config.App(t.Context(), jobtest.App)
			if err != nil {
				t.Fatal(err)
			}
			w.Clock = func() time.Time { return app.ChangedAt.Add(c.since) }
			j, err := w.Runner.Start(t.Context(), draft(0), c.delay)
			if err != nil || j.State != job.Planning || !j.StartedAt.Equal(w.Now) {
				t.Errorf("got %+v, error %v", j, err)
			}
			if got := w.Tasks[0].Delay; got != c.want {
				t.Errorf("planned in %v, want %v", got, c.want)
			}
		})
	}
	w := jobtest.New(t, jobtest.Collection, 3, roomy)
	unknown := draft(0)
	unknown.App = "unknown"
	if _, err := w.Runner.Start(t.Context(), unknown, 0); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("unknown app: %v", err)
	}
	if _, err := w.Jobs.Job(t.Context(), "unknown", "strategy-1"); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("its job: %v", err)
	}
}
