package job_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// A cancellation of a job that becomes done at the same time returns ErrEnded.
func TestCancelOfDoneJob(t *testing.T) {
	w := started(t, 3, roomy)
	w.Gate = func(_ context.Context, what string) jobtest.Fault {
		if what == "totals" {
			w.Gate = nil
			w.Drain()
		}
		return jobtest.None
	}
	for _, when := range []string{"as it gets done", "later"} {
		j, err := w.Runner.Cancel(t.Context(), jobtest.App, "strategy-1")
		if !errors.Is(err, job.ErrEnded) || j.State != job.Done {
			t.Errorf("%s: %s, error %v; want it done", when, j.State, err)
		}
	}
	w.WantDone("strategy-1")
}

// A job that is cancelled during its planning gets no more shards.
func TestCancelStopsThePlanning(t *testing.T) {
	w := started(t, 20, roomy)
	created := 0
	w.Gate = func(ctx context.Context, what string) jobtest.Fault {
		if what == "create shard" {
			if created++; created == 2 {
				if _, err := w.Runner.Cancel(ctx, jobtest.App, "strategy-1"); err != nil {
					t.Error(err)
				}
			}
		}
		return jobtest.None
	}
	o, err := w.Deliver(t.Context(), w.Tasks[0])
	if err != nil || o.Dropped != "the job is cancelled" || created != 2 {
		t.Errorf("got %+v, error %v, %d shards; want it dropped after 2", o, err, created)
	}
}

// A job that is cancelled while a shard is processed stops at the next
// checkpoint.
func TestCancelStopsTheWork(t *testing.T) {
	w := started(t, 10, job.Settings{ShardUsers: 100, Budget: time.Hour, Attempts: 1})
	w.DeliverTask(w.Tasks[0])
	computed := 0
	w.Gate = func(ctx context.Context, what string) jobtest.Fault {
		if what == "work" {
			if computed++; computed == 3 {
				if _, err := w.Runner.Cancel(ctx, jobtest.App, "strategy-1"); err != nil {
					t.Error(err)
				}
			}
		}
		return jobtest.None
	}
	o, err := w.Deliver(t.Context(), w.Tasks[1])
	if err != nil || o.Dropped != "the job is cancelled" || computed != 3 {
		t.Errorf("got %+v, error %v, %d users computed; want it dropped after 3", o, err, computed)
	}
	j := w.WantState("strategy-1", job.Cancelled, "")
	if j.Totals.Counts["users"] != 2 {
		t.Errorf("%d users visited, want those that were counted when it was cancelled", j.Totals.Counts["users"])
	}
	if again, err := w.Runner.Cancel(t.Context(), jobtest.App, "strategy-1"); !errors.Is(err, job.ErrEnded) || again.State != job.Cancelled {
		t.Errorf("cancel again: %s, error %v", again.State, err)
	}
	if _, err := w.Runner.Cancel(t.Context(), jobtest.App, "strategy-9"); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("cancel an unknown job: %v", err)
	}
}
