package recompute_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// TestSupersession starts jobs in turn: "manual", "strategy" for the active
// strategy, "next" for a new one, "ranking" for one of the same scoring, "night" for the day's nightly job and
// "tomorrow" for that of the next day.
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
		"strategy ranking":         "strategy-1:planning",
		"strategy ranking next":    "strategy-3:planning strategy-1:superseded",
		"ranking strategy night":   "strategy-1:planning",
	} {
		t.Run(starts, func(t *testing.T) {
			w := newHarness(t, 3, roomy)
			w.inTurn(starts, w.start)
			for _, j := range w.list() {
				if j.State == job.Superseded && !strings.Contains(j.Error, "takes its place") {
					t.Errorf("%s does not name its successor: %q", j.ID, j.Error)
				}
			}
			w.wantJobs(want)
			w.Drain()
			if state := w.list()[0].State; state != job.Done {
				t.Errorf("the remaining job is %s", state)
			}
		})
	}
}

func (w *harness) start(what string) {
	w.T.Helper()
	var err error
	switch what {
	case "manual":
		_, err = w.runner.StartManual(w.T.Context(), jobtest.App, recompute.Options{})
	case "next", "ranking", "strategy":
		switch what {
		case "next":
			w.SetStrategy(2)
		case "ranking":
			w.setRanking()
		}
		_, err = w.runner.StartStrategy(w.T.Context(), jobtest.App)
	case "tomorrow":
		w.Now = w.Now.Add(24 * time.Hour)
		fallthrough
	case "night":
		err = w.runner.Nightly(w.T.Context(), jobtest.App, w.tonight(false))
	}
	must.Succeed(w.T, err)
}

// tonight is the night of the harness's clock.
func (h *harness) tonight(full bool) job.Night {
	return job.Night{Date: h.Now.Format(time.DateOnly), Full: full}
}

// setRanking changes the ranking of the active strategy, not its scoring.
func (h *harness) setRanking() {
	h.T.Helper()
	app, err := h.Config.App(h.T.Context(), jobtest.App)
	must.Succeed(h.T, err)
	s := app.Strategy
	s.Ranking = strategy.PlainRanking()
	s.PersonalizationImpact++
	_, _, err = h.Config.SetStrategy(h.T.Context(), jobtest.App, s)
	must.Succeed(h.T, err)
}

// Of two jobs that start concurrently one remains, in every order of their
// steps.
func TestConcurrentStarts(t *testing.T) {
	for _, first := range []string{"manual", "strategy", "night"} {
		for _, second := range []string{"manual", "strategy", "next"} {
			calls := 1
			for at := 0; at < calls; at++ {
				w := newHarness(t, 3, roomy)
				w.atCall(at, &calls, func() {
					w.Now = w.Now.Add(-time.Second) // by another machine's clock
					w.start(second)
					w.Now = w.Now.Add(time.Second)
				})
				w.start(first)
				w.Gate = nil
				w.Drain()
				done, jobs := 0, w.list()
				for _, j := range jobs {
					switch j.State {
					case job.Done:
						if done++; job.ParamsOf[recompute.Params](j).Trigger == recompute.Nightly {
							t.Errorf("%s, with %s at call %d: the nightly one stays", first, second, at)
						}
					case job.Superseded:
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

// A job for a strategy that is no longer active ends at its next task.
func TestNewerStrategySupersedes(t *testing.T) {
	for after := range 3 {
		w := started(t, 10, roomy)
		w.DeliverNext(after)
		w.SetStrategy(2)
		w.Drain()
		w.WantState("strategy-1", job.Superseded, "strategy version 2 has replaced 1")
	}
}

// A job goes on under a strategy that only ranks differently.
func TestRankingSupersedesNothing(t *testing.T) {
	for after := range 3 {
		w := started(t, 10, roomy)
		w.DeliverNext(after)
		w.setRanking()
		w.Drain()
		w.WantDone("strategy-1")
		j, err := w.runner.StartStrategy(t.Context(), jobtest.App)
		if err != nil || j.ID != "strategy-1" || j.State != job.Done || len(w.Waiting()) > 0 {
			t.Errorf("after the change the job %s is %s, error %v, %d tasks; want the same job", j.ID, j.State, err, len(w.Waiting()))
		}
	}
}

// A job of an engine that does not know scoring versions has the version of the
// strategy.
func TestJobOfEarlierEngine(t *testing.T) {
	app := config.App{StrategyVersion: 6, ScoringVersion: 4}
	for version, want := range map[int64]string{
		3: "strategy version 4 has replaced 3", 4: "", 5: "", 6: "", 7: "strategy version 4 has replaced 7",
	} {
		for name, p := range map[string]recompute.Params{
			"earlier": {StrategyVersion: version}, "this": {StrategyVersion: 9, ScoringVersion: version},
		} {
			if got := (recompute.Work{}).Obsolete(job.Job{Params: p}, app); got != want {
				t.Errorf("job of version %d by the %s engine: %q, want %q", version, name, got, want)
			}
		}
	}
}

func TestOnlyStale(t *testing.T) {
	w := newHarness(t, 7, roomy)
	w.Users["b"].Version, w.Users["c"].Version = 1, 1
	j, err := w.runner.StartManual(t.Context(), jobtest.App, recompute.Options{OnlyStale: true})
	if err != nil || !strings.HasPrefix(j.ID, "manual-20261120T120000Z-") {
		t.Fatalf("started %q, error %v", j.ID, err)
	}
	w.Drain()
	j = w.WantState(j.ID, job.Done, "")
	want := job.Totals{Shards: 3, Done: 3, PlannedUsers: 7, Counts: job.Count(recompute.Counts{Users: 7, Known: 6, Events: 7*1000 + 21 - 2001 - 2, Written: 5})}
	if diff := cmp.Diff(want, j.Totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
}

func TestNightly(t *testing.T) {
	w := newHarness(t, 3, roomy)
	night := job.Night{Date: "2026-11-19"} // it began before midnight
	calls := w.DieAt(2, jobtest.FailAfter)
	if err := w.runner.Nightly(jobtest.Process(t.Context()), jobtest.App, night); !errors.Is(err, jobtest.ErrFault) || calls() < 3 {
		t.Errorf("death at a call: error %v after %d calls", err, calls())
	}
	w.Gate = nil
	for range 2 {
		must.Succeed(t, w.runner.Nightly(t.Context(), jobtest.App, night))
	}
	if len(w.Tasks) != 1 || w.Tasks[0].Delay > 0 {
		t.Errorf("tasks %+v, want one to plan at once", w.Tasks)
	}
	w.Drain()
	j := w.WantDone("nightly-2026-11-19")
	if p := job.ParamsOf[recompute.Params](j); !p.OnlyStale || !p.Maintain || p.Trigger != recompute.Nightly {
		t.Errorf("got %+v, want a nightly job that maintains and computes only stale users", p)
	}
}

// A scheduled full recompute is a job of its own beside the day's nightly one. It takes
// the place of an unfinished nightly one, and no nightly one takes its place.
func TestScheduledFullRecompute(t *testing.T) {
	const nightly, full = "nightly-2026-11-20", "nightly-2026-11-20-full"
	round := func(w *harness, full bool) (jobs int) {
		t.Helper()
		must.Succeed(t, w.runner.Nightly(t.Context(), jobtest.App, w.tonight(full)))
		all, err := w.Jobs.List(t.Context(), jobtest.App, 10)
		must.Succeed(t, err)
		return len(all)
	}
	w := newHarness(t, 3, roomy)
	round(w, false)
	if round(w, true) != 2 || w.Find(nightly).State != job.Superseded {
		t.Errorf("an unfinished nightly job is %s", w.Find(nightly).State)
	}
	if round(w, false) != 2 || round(w, true) != 2 || w.Find(full).State.Ended() {
		t.Error("a nightly job started beside a full one, or the full one is gone")
	}
	w.Drain()
	if p := job.ParamsOf[recompute.Params](w.WantDone(full)); p.OnlyStale || !p.Maintain || p.Trigger != recompute.Nightly {
		t.Errorf("got %+v, want a nightly job that computes every profile and maintains", p)
	}
	w = newHarness(t, 3, roomy)
	if _, err := w.runner.StartManual(t.Context(), jobtest.App, recompute.Options{Full: true}); err != nil {
		t.Fatal(err)
	}
	if round(w, true) != 1 {
		t.Error("a full nightly job started beside an operator's")
	}
}

// The nightly schedule enqueues the tasks of an emptied queue again.
func TestNightlyResumesLostTasks(t *testing.T) {
	for after := range 6 {
		w := started(t, 10, roomy)
		w.DeliverNext(after)
		w.LoseTasks()
		w.start("night")
		w.Drain()
		w.WantDone("strategy-1")
	}
}

// The same for a job that only lacks its finish.
func TestNightlyFinishesDoneJob(t *testing.T) {
	w := started(t, 3, roomy)
	w.Gate = func(_ context.Context, what string) jobtest.Fault {
		if what == "totals" {
			return jobtest.FailBefore
		}
		return jobtest.None
	}
	for range 2 {
		_, _ = w.Deliver(t.Context(), w.Waiting()[0])
	}
	w.LoseTasks()
	w.Gate = nil
	if j := w.Find("strategy-1"); j.State != job.Running || j.Totals.Done != 1 {
		t.Fatalf("got %+v, want it running with its shard done", j)
	}
	w.start("night")
	w.WantDone("strategy-1")
}
