package segmentbuild_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
)

// A build whose process dies at any request ends, and its answers are exact.
func TestBuildSurvivesCrashes(t *testing.T) {
	for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
		for at := 0; ; at += race.Or(5, 17) {
			h := newHarness(t, in(t), small)
			h.fill(30)
			h.Now = h.Now.Add(time.Second)
			j, err := h.runner.StartManual(t.Context(), app)
			must.Succeed(t, err)
			calls := h.DieAt(at, f)
			h.Drain()
			h.run()
			h.Gate = nil
			h.WantState(j.ID, job.Done, "")
			h.apply(h.seen(token(3), "c1", time.Hour))
			h.wantExact(fmt.Sprint("crash at request ", at))
			if at >= calls() {
				break
			}
		}
	}
}

// A delta whose process dies at any request leaves exact answers, and so does its
// repetition.
func TestDeltaSurvivesCrashes(t *testing.T) {
	for _, f := range []jobtest.Fault{jobtest.FailBefore, jobtest.FailAfter} {
		for at := 0; ; at += race.Or(3, 13) {
			h := newHarness(t, in(t), small)
			h.fill(40)
			h.build()
			h.run()
			change := func(n int) {
				h.apply(h.seen(token(n), "c1", time.Hour), h.seen(token(n+1), "c2", time.Hour), h.seen(token(40+n), "c0", time.Hour))
			}
			change(1)
			h.order() // the next one is joined with this
			change(2)
			h.Now = h.Now.Add(time.Minute)
			if _, err := h.runner.Order(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			task := h.beside[0]
			calls := h.DieAt(at, f)
			_, err := h.deliver(jobtest.Process(t.Context()), task)
			h.Gate = nil
			h.wantExact(fmt.Sprint("died at request ", at))
			if _, err := h.deliver(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			h.wantExact(fmt.Sprint("repeated after request ", at))
			if err == nil && at >= calls() {
				break
			}
		}
	}
}

// Of two deltas for one manifest at once, and of a delta and a swap, one is in the
// manifest.
func TestDeltaMeetsAnotherWriter(t *testing.T) {
	for _, other := range []string{"delta", "build"} {
		for at := 0; ; at += race.Or(5, 17) {
			h := newHarness(t, in(t), small)
			h.fill(40)
			h.build()
			h.run()
			h.apply(h.seen(token(1), "c1", time.Hour), h.seen(token(2), "c2", time.Hour), h.seen("new", "c0", time.Hour))
			h.Now = h.Now.Add(time.Minute)
			if _, err := h.runner.Order(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			task, calls := h.beside[0], 0
			h.Gate = func(context.Context, string) jobtest.Fault {
				if calls++; calls-1 == at {
					gate := h.Gate
					h.Gate = nil
					if other == "build" {
						h.build()
					} else if _, err := h.deliver(t.Context(), task); err != nil {
						t.Fatal(err)
					}
					h.apply(h.seen(token(5), "c1", time.Hour))
					h.Gate = gate
				}
				return jobtest.None
			}
			before := h.manifest().Version
			calls = 0
			if _, err := h.deliver(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			h.Gate = nil
			if v := h.manifest().Version; v != before+1 && at > 3 && at < calls {
				t.Errorf("%s at request %d: version %d follows %d", other, at, v, before)
			}
			h.wantExact(fmt.Sprint(other, " at request ", at))
			if at >= calls {
				break
			}
		}
	}
}

// A strategy, a retention or a switch that changes during a build ends it, and the next
// one is right.
func TestChangesDuringABuildEndIt(t *testing.T) {
	for name, change := range map[string]func(h *harness) error{
		"scoring": func(h *harness) error { h.score(7); return nil },
		"switch": func(h *harness) error {
			if err := h.Config.SetSegments(h.T.Context(), app, false); err != nil {
				return err
			}
			return h.Config.SetSegments(h.T.Context(), app, true)
		},
		"retention": func(h *harness) error { return h.Config.SetRetention(h.T.Context(), app, 30) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, in(t), small)
			h.fill(50)
			h.Now = h.Now.Add(time.Second)
			j, err := h.runner.StartManual(t.Context(), app)
			must.Succeed(t, err)
			h.DeliverNext(2) // the plan and a shard
			must.Succeed(t, change(h))
			h.Drain()
			if h.Find(j.ID).State != job.Superseded || h.manifest().Version != 0 {
				t.Errorf("the build is %s, the manifest has version %d", h.Find(j.ID).State, h.manifest().Version)
			}
			h.WantState(h.build().ID, job.Done, "")
			h.wantExact("built again")
		})
	}
}

// The newer of two builds takes the place of the older, and what the older has written is
// dropped an hour after the swap.
func TestTwoBuilds(t *testing.T) {
	h := newHarness(t, in(t), small)
	h.fill(50)
	h.Now = h.Now.Add(time.Second)
	older, err := h.runner.StartManual(t.Context(), app)
	must.Succeed(t, err)
	h.DeliverNext(3)
	newer := h.build()
	h.WantState(older.ID, job.Superseded, newer.ID)
	h.WantState(newer.ID, job.Done, "")
	h.wantExact("two builds")
	before := len(h.parts())
	h.Now = h.Now.Add(2 * time.Hour)
	h.run() // a delta that finds nothing, and cleaning
	var named []string
	for _, p := range h.manifest().Parts {
		named = append(named, p.ID.String())
	}
	slices.Sort(named)
	var left []string
	for _, id := range h.parts() {
		left = append(left, id.String())
	}
	if !slices.Equal(left, named) || before <= len(left) {
		t.Errorf("parts left %v of %d, named %v", left, before, named)
	}
	h.wantExact("cleaned")
}

// An app without the switch has no builds, and a nightly round starts one a day of the
// others.
func TestNightly(t *testing.T) {
	h := newHarness(t, in(t), small)
	h.fill(10)
	for range 2 {
		must.Succeed(t, h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}))
	}
	h.Drain()
	if jobs, err := h.Jobs.List(t.Context(), app, 10); err != nil || len(jobs) != 1 || jobs[0].State != job.Done {
		t.Fatalf("%d builds, %v; want one that is done", len(jobs), err)
	}
	must.Succeed(t, h.Config.SetSegments(t.Context(), app, false))
	h.Now = h.Now.Add(24 * time.Hour)
	if err := h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}); err != nil || len(h.Waiting()) != 0 {
		t.Errorf("%v, %d tasks of an app without segments", err, len(h.Waiting()))
	}
}
