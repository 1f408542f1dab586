package recompute_test

import (
	"context"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// A job that folds makes a dictionary before it runs, from users of all shards. Other
// jobs make none.
func TestDictionaryIsMadeFirst(t *testing.T) {
	for _, what := range []string{"strategy", "manual", "night", "import", "fold"} {
		w := newHarness(t, 11, roomy) // 4 shards
		made := job.State("")
		w.Gate = func(_ context.Context, what string) jobtest.Fault {
			if what == "dictionary" {
				made = w.newest().State
			}
			return jobtest.None
		}
		w.startAfterImport(what)
		w.Drain()
		if folds := what != "strategy" && what != "manual"; folds != (made == job.Planning) || folds != slices.Equal(w.starts, []string{"", "d", "g", "j"}) {
			t.Errorf("%s: a dictionary is made while the job is %q, from the users after %q", what, made, w.starts)
		}
	}
}

// A job of many shards samples users of 32, and a fault of the store of jobs, or a crash,
// repeats that.
func TestDictionaryOfManyShards(t *testing.T) {
	settings := roomy
	settings.ShardUsers, settings.Concurrency = 1, 2
	w := newHarness(t, 0, settings)
	for _, first := range "abc" {
		for _, second := range "abcdefghijklmnopqrstuvwxyz" {
			w.Users[string(first)+string(second)] = &jobtest.User{Known: true}
		}
	}
	failed := false
	w.Gate = func(_ context.Context, what string) jobtest.Fault {
		if what == "shard" && !failed {
			failed = true
			return jobtest.FailBefore
		}
		return jobtest.None
	}
	if _, err := w.runner.StartManual(t.Context(), jobtest.App, recompute.Options{Fold: true}); err != nil {
		t.Fatal(err)
	}
	w.Drain()
	if w.newest().State != job.Done || len(w.starts) != 32 || w.starts[0] != "" || w.starts[31] < "cs" || !slices.IsSorted(w.starts) {
		t.Errorf("the job is %s, %d places %q", w.newest().State, len(w.starts), w.starts)
	}
}
