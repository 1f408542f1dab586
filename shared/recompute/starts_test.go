package recompute_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/recompute"
)

// TestSupersession starts jobs one after the other: "manual", "strategy" for the
// active one, "next" for a new one, "night" for the round of the day and "tomorrow"
// for that of the next.
func TestSupersession(t *testing.T) {
	for starts, want := range map[string]string{
		"strategy manual":          "manual:planning strategy-1:superseded",
		"manual manual":            "manual:planning manual:superseded",
		"strategy next":            "strategy-2:planning strategy-1:superseded",
		"manual next":              "strategy-2:planning manual:superseded",
		"strategy manual next":     "strategy-2:planning manual:superseded strategy-1:superseded",
		"strategy manual strategy": "manual:planning strategy-1:superseded",
		"night strategy":           "strategy-1:planning nightly-2026-11-20:superseded",
		"night manual":             "manual:planning nightly-2026-11-20:superseded",
		"night tomorrow":           "nightly-2026-11-21:planning nightly-2026-11-20:superseded",
		"night night":              "nightly-2026-11-20:planning",
		"strategy night":           "strategy-1:planning",
		"manual tomorrow":          "manual:planning",
	} {
		t.Run(starts, func(t *testing.T) {
			w := newWorld(t, 3, roomy)
			for _, what := range strings.Fields(starts) {
				w.now = w.now.Add(time.Second)
				w.start(what)
			}
			jobs, err := w.runner.List(t.Context(), app, 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range jobs {
				id := j.ID
				if j.Trigger == recompute.ByHand {
					id = "manual"
				}
				got = append(got, id+":"+string(j.State))
				if j.State == recompute.Superseded && !strings.Contains(j.Error, "takes its place") {
					t.Errorf("%s does not say by what: %q", j.ID, j.Error)
				}
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			w.drain()
			jobs, err = w.runner.List(t.Context(), app, 100)
			if err != nil || jobs[0].State != recompute.Done {
				t.Errorf("the one that stays is %s in the end, error %v", jobs[0].State, err)
			}
		})
	}
}

func (w *world) start(what string) {
	w.t.Helper()
	var err error
	switch what {
	case "manual":
		_, err = w.runner.StartManual(w.t.Context(), app, false)
	case "next":
		w.setStrategy(2)
		fallthrough
	case "strategy":
		_, err = w.runner.StartStrategy(w.t.Context(), app)
	case "tomorrow":
		w.now = w.now.Add(24 * time.Hour)
		fallthrough
	case "night":
		_, _, err = w.runner.Nightly(w.t.Context(), time.Hour)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Of jobs that are started at the same time one stays, whoever comes first to
// each step.
func TestStartedAtTheSameTime(t *testing.T) {
	for _, first := range []string{"manual", "strategy", "night"} {
		for _, second := range []string{"manual", "strategy", "next"} {
			calls := 1
			for at := 0; at < calls; at++ {
				w := newWorld(t, 3, roomy)
				calls = 0
				w.gate = func(context.Context, string) fault {
					if calls++; calls-1 == at {
						gate := w.gate
						w.gate = nil
						w.now = w.now.Add(-time.Second) // by another machine's clock
						w.start(second)
						w.now = w.now.Add(time.Second)
						w.gate = gate
					}
					return none
				}
				w.start(first)
				w.gate = nil
				w.drain()
				jobs, err := w.runner.List(t.Context(), app, 100)
				if err != nil {
					t.Fatal(err)
				}
				done := 0
				for _, j := range jobs {
					switch j.State {
					case recompute.Done:
						if done++; j.Trigger == recompute.ByNight {
							t.Errorf("%s, with %s at call %d: the nightly one stays", first, second, at)
						}
					case recompute.Superseded:
					default:
						t.Errorf("%s, with %s at call %d: %s is %s", first, second, at, j.ID, j.State)
					}
				}
				if done != 1 {
					t.Errorf("%s, with %s at call %d: %d of %d jobs are done, want one", first, second, at, done, len(jobs))
				}
			}
		}
	}
}

// A job whose strategy is no longer the active one ends at its next task.
func TestNewerStrategyInTheConfiguration(t *testing.T) {
	for after := range 3 {
		w := started(t, 10, roomy)
		for range after {
			if _, err := w.deliver(t.Context(), w.waiting()[0]); err != nil {
				t.Fatal(err)
			}
		}
		w.setStrategy(2)
		w.drain()
		w.wantState("strategy-1", recompute.Superseded, "strategy version 2 has taken the place of 1")
	}
}

func TestOnlyStale(t *testing.T) {
	w := newWorld(t, 7, roomy)
	w.users["b"].version, w.users["c"].version = 1, 1
	j, err := w.runner.StartManual(t.Context(), app, true)
	if err != nil || !strings.HasPrefix(j.ID, "manual-20261120T120000Z-") {
		t.Fatalf("started %q, error %v", j.ID, err)
	}
	w.drain()
	j = w.wantState(j.ID, recompute.Done, "")
	want := recompute.Totals{Shards: 3, Done: 3, PlannedUsers: 7, Visited: 7, Users: 6, Events: 7*1000 + 21 - 2001 - 2}
	if diff := cmp.Diff(want, j.Totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestNightly(t *testing.T) {
	w := newWorld(t, 3, roomy)
	for _, id := range []string{"zoo", "bar", "cafe"} {
		if err := w.apps.CreateApp(t.Context(), config.App{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	var creations atomic.Int64
	w.gate = func(_ context.Context, what string) fault {
		if what == "create" && creations.Add(1) == 2 {
			return failBefore
		}
		return none
	}
	started, left, err := w.runner.Nightly(t.Context(), 2*time.Hour)
	if started != 3 || left != 1 || !errors.Is(err, errFault) {
		t.Errorf("with a fault: %d started, %d left out, error %v", started, left, err)
	}
	for range 2 {
		if started, left, err = w.runner.Nightly(t.Context(), 2*time.Hour); started != 4 || left != 0 || err != nil {
			t.Errorf("again: %d started, %d left out, error %v; want all four", started, left, err)
		}
	}
	got := map[string]time.Duration{}
	for _, k := range w.tasks {
		plan, err := recompute.DecodePlan(k.Body)
		if err != nil || plan.Job != "nightly-2026-11-20" {
			t.Errorf("task %s, error %v", k.Body, err)
		}
		got[plan.App] = k.Delay
	}
	want := map[string]time.Duration{"bar": 0, "cafe": 30 * time.Minute, "shop": time.Hour, "zoo": 90 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" || len(w.tasks) != 4 {
		t.Errorf("%d tasks, begun after (-want +got):\n%s", len(w.tasks), diff)
	}
	w.drain()
	j := w.wantDone("nightly-2026-11-20")
	if !j.OnlyStale || !j.Maintain || j.Trigger != recompute.ByNight {
		t.Errorf("got %+v, want it to maintain and leave alone what is current", j)
	}
}

// Tasks that were lost, with a queue that was emptied, are ordered again by the
// nightly round.
func TestNightlyResumesWhatWasLost(t *testing.T) {
	for after := range 6 {
		w := started(t, 10, roomy)
		for range after {
			if _, err := w.deliver(t.Context(), w.waiting()[0]); err != nil {
				t.Fatal(err)
			}
		}
		w.tasks, w.names = nil, map[string]bool{}
		w.start("night")
		w.drain()
		w.wantDone("strategy-1")
	}
}

// The same where nothing is left but to see that all is done.
func TestNightlyFinishesWhatIsDone(t *testing.T) {
	w := started(t, 3, roomy)
	w.gate = func(_ context.Context, what string) fault {
		if what == "totals" {
			return failBefore
		}
		return none
	}
	for range 2 {
		_, _ = w.deliver(t.Context(), w.waiting()[0])
	}
	w.tasks, w.gate = nil, nil
	if j := w.find("strategy-1"); j.State != recompute.Running || j.Totals.Done != 1 {
		t.Fatalf("got %+v, want it running with its shard done", j)
	}
	w.start("night")
	w.wantDone("strategy-1")
}

func TestConfig(t *testing.T) {
	if err := (recompute.Config{ShardUsers: 1, Budget: time.Second, Attempts: 1}).Validate(); err != nil {
		t.Error(err)
	}
	err := recompute.Config{Budget: 9 * time.Minute}.Validate()
	for _, variable := range []string{"RECOMPUTE_SHARD_USERS", "RECOMPUTE_BUDGET", "RECOMPUTE_ATTEMPTS"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("error %v does not name %s", err, variable)
		}
	}
}

// FuzzDecodeTasks: what is no task is refused, and no input does worse.
func FuzzDecodeTasks(f *testing.F) {
	f.Add([]byte(`{"app":"shop","job":"strategy-1","shard":1,"from":"a","to":"","step":2}`))
	f.Add([]byte(`{"app":"sh,op","job":"strategy-1"}`))
	f.Add([]byte(`{"app":"shop","job":"a/b","step":-1}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if p, err := recompute.DecodePlan(body); err == nil && (!config.ValidAppID(p.App) || p.Job == "" || p.Step < 0) {
			t.Errorf("%s is taken for %+v", body, p)
		}
		if s, err := recompute.DecodeShard(body); err == nil && (!config.ValidAppID(s.App) || s.Job == "" || s.Shard < 0 || s.Step < 0) {
			t.Errorf("%s is taken for %+v", body, s)
		}
	})
}
