package recompute_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

// TestImportStarts starts jobs in turn, as TestSupersession does, and more: "import"
// for an import that ended when the test began, "later" for one that ended
// at the start, "fold" by hand with folds, "drain" to run all tasks and
// "cancel" to cancel the newest job. A job is printed with "+" if it folds.
func TestImportStarts(t *testing.T) {
	for starts, want := range map[string]string{
		"import":                   "import:planning+",
		"import import":            "import:planning+",
		"import drain import":      "import:done+",
		"import drain later":       "import:planning+ import:done+",
		"import drain manual":      "manual:planning import:done+",
		"import cancel import":     "import:cancelled+",
		"import cancel manual":     "manual:planning import:cancelled+",
		"strategy busy":            "strategy-1:planning",
		"night busy":               "nightly-2026-11-20:planning",
		"manual drain import":      "import:planning+ manual:done",
		"fold import":              "manual:planning+",
		"fold drain import":        "manual:done+",
		"fold later-busy":          "manual:planning+",
		"import later-busy":        "import:planning+",
		"import manual":            "manual:planning+ import:superseded+",
		"import manual next":       "strategy-2:planning+ manual:superseded+ import:superseded+",
		"import night":             "nightly-2026-11-20:planning+ import:superseded+",
		"import strategy import":   "strategy-1:planning+ import:superseded+",
		"import night drain later": "import:planning+ nightly-2026-11-20:done+ import:superseded+",
	} {
		t.Run(starts, func(t *testing.T) {
			w := newHarness(t, 3, roomy)
			w.inTurn(starts, w.startAfterImport)
			w.wantJobs(want)
		})
	}
}

func (w *harness) startAfterImport(what string) {
	w.T.Helper()
	ctx, last := w.T.Context(), jobtest.Noon
	switch what {
	default:
		w.start(what)
	case "drain":
		w.Drain()
	case "cancel":
		if _, err := w.runner.Cancel(ctx, jobtest.App, w.newest().ID); err != nil {
			w.T.Fatal(err)
		}
	case "fold":
		if _, err := w.runner.StartManual(ctx, jobtest.App, recompute.Options{Fold: true}); err != nil {
			w.T.Fatal(err)
		}
	case "import", "later":
		if what == "later" {
			last = w.Now
		}
		if _, err := w.runner.StartImport(ctx, jobtest.App, last); err != nil {
			w.T.Fatal(err)
		}
	case "busy", "later-busy":
		if what == "later-busy" {
			last = w.Now
		}
		if j, err := w.runner.StartImport(ctx, jobtest.App, last); !errors.Is(err, recompute.ErrBusy) {
			w.T.Fatalf("started %+v, %v; want that it waits", j, err)
		}
	}
}

func (w *harness) newest() job.Job {
	w.T.Helper()
	jobs, err := w.runner.List(w.T.Context(), jobtest.App, 1)
	if err != nil || len(jobs) == 0 {
		w.T.Fatalf("%d jobs, %v", len(jobs), err)
	}
	return jobs[0]
}

// list returns the jobs, the newest first.
func (w *harness) list() []job.Job {
	w.T.Helper()
	jobs, err := w.runner.List(w.T.Context(), jobtest.App, 100)
	must.Succeed(w.T, err)
	return jobs
}

// wantJobs checks the jobs as the method jobs describes them.
func (w *harness) wantJobs(want string) {
	w.T.Helper()
	if got := strings.Join(w.jobs(), " "); got != want {
		w.T.Errorf("got %s, want %s", got, want)
	}
}

// inTurn starts jobs a second apart.
func (w *harness) inTurn(starts string, start func(what string)) {
	w.T.Helper()
	for _, what := range strings.Fields(starts) {
		w.Now = w.Now.Add(time.Second)
		start(what)
	}
}

// atCall does something before the call with a number, from 0, and counts the calls.
func (w *harness) atCall(at int, calls *int, do func()) {
	*calls = 0
	w.Gate = func(context.Context, string) jobtest.Fault {
		if *calls++; *calls-1 == at {
			gate := w.Gate
			w.Gate = nil
			do()
			w.Gate = gate
		}
		return jobtest.None
	}
}

// jobs describes the jobs, the newest first.
func (w *harness) jobs() []string {
	w.T.Helper()
	var all []string
	for _, j := range w.list() {
		p, text := job.ParamsOf[recompute.Params](j), j.ID
		if p.Trigger == recompute.Manual || p.Trigger == recompute.Import {
			text = string(p.Trigger)
		}
		if text += ":" + string(j.State); p.Fold {
			text += "+"
		}
		all = append(all, text)
	}
	return all
}

// Of an import job and another that start concurrently the other remains, in every
// order of their steps.
func TestImportStartsConcurrently(t *testing.T) {
	for _, second := range []string{"manual", "next", "night"} {
		calls := 1
		for at := 0; at < calls; at++ {
			w := newHarness(t, 3, roomy)
			w.atCall(at, &calls, func() { w.start(second) })
			_, err := w.runner.StartImport(t.Context(), jobtest.App, jobtest.Noon.Add(-time.Hour))
			if w.Gate = nil; err != nil && !errors.Is(err, recompute.ErrBusy) {
				t.Fatal(err)
			}
			w.Drain()
			if got := w.jobs(); len(got) > 2 || !strings.Contains(strings.Join(got, " "), ":done") || strings.Contains(strings.Join(got, " "), "import:done") {
				t.Errorf("import, with %s at call %d: %s", second, at, got)
			}
		}
	}
}
