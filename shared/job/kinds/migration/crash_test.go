package migration_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// every makes the tests longer that disturb one call in turn: go test
// ./shared/job/kinds/migration -every 1
var every = flag.Int64("every", 64, "TestCrashes has one call of so many fail, TestHappenings one of a third of that disturbed")

// scripts are sequences of steps; "undo" is the rollback of a cutover.
var scripts = map[string][]string{
	"undone and over": {"start", "backfill", "verify", "cutover", "undo", "verify", "cutover", "drop"},
	"given up":        {"start", "backfill", "rollback"},
}

// faulty counts calls, and makes one of them fail.
type faulty struct {
	calls atomic.Int64
	at    int64
	how   string
}

func (f *faulty) gate(ctx context.Context, _ string) jobtest.Fault {
	if gone := alive(ctx); gone != jobtest.None {
		return gone
	}
	if f.calls.Add(1) != f.at {
		return jobtest.None
	}
	switch f.how {
	case "fails before":
		return jobtest.FailBefore
	case "fails after":
		return jobtest.FailAfter
	}
	return dies(ctx)
}

// TestCrashes makes each call fail in turn, in three ways: before the call,
// after it, or with the end of its process. Steps and tasks are retried, and
// always lead to the same result.
func TestCrashes(t *testing.T) {
	t.Parallel()
	g := &gate{}
	s, client := storetest.NewDeployed(t, g.dial()...)
	run := func(t *testing.T, script []string, f *faulty) {
		w := newHarnessOn(t, s, client, g, schema.Narrow, job.Settings{ShardUsers: 2, Budget: usual.Budget, Attempts: 3})
		w.clear(t)
		w.apply(visits(t, users[:3], 2)...)
		w.Gate = f.gate
		for _, step := range script {
			w.insist(t, step)
		}
		w.Gate = nil
		end := w.status()
		if end.Active() {
			t.Fatalf("the migration is not over: %+v", end)
		}
		w.wantRows(end.Log.Read, 0)
		w.wantEmpty(end.Log.Read.Other())
		if jobs, err := w.Jobs.Unfinished(t.Context(), jobtest.App); err != nil || len(jobs) > 0 {
			t.Errorf("jobs that have not ended: %+v, error %v", jobs, err)
		}
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			count := &faulty{}
			run(t, script, count)
			calls := count.calls.Load()
			for _, how := range []string{"fails before", "fails after", "ends the process"} {
				for at := 1 + rand.Int64N(*every); at <= calls; at += *every {
					t.Run(fmt.Sprintf("call %d %s", at, how), func(t *testing.T) { run(t, script, &faulty{at: at, how: how}) })
				}
			}
		})
	}
}

// insist takes a step until it succeeds.
func (w *harness) insist(t *testing.T, step string) {
	t.Helper()
	for range 5 {
		if done := w.attempt(t, step); done {
			return
		}
	}
	t.Fatalf("%s is not done after 5 attempts: %+v", step, w.app().Migration)
}

// attempt takes a step and runs its tasks in processes that may die, and
// reports whether the step is complete.
func (w *harness) attempt(t *testing.T, step string) bool {
	t.Helper()
	if step != "undo" || w.app().Migration.Phase == config.CutOver { // taken again it would be another step
		_, err := w.step(begin(t.Context()), step, schema.Wide)
		if err != nil {
			return false
		}
	}
	for n := 0; len(w.Waiting()) > 0; n++ {
		if n == 100 {
			t.Fatalf("%s: tasks without end", step)
		}
		_, _ = w.Deliver(begin(t.Context()), w.Waiting()[0]) // after an error it is delivered again
	}
	open := w.Gate
	w.Gate = nil
	defer func() { w.Gate = open }()
	st := w.status()
	if !st.Working() {
		w.wantDone(st)
	}
	return !st.Working()
}
