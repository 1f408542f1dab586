package job_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

func TestMemory(t *testing.T) {
	jobtest.TestJobs(t, func(*testing.T) job.Jobs { return job.NewMemory() })
}

// Each collection has a store of its own. An app's jobs are deleted in all but those of
// its deletion.
func TestMemories(t *testing.T) {
	stores := job.NewMemories()
	recomputes, moves := job.Collection{Name: "recomputes"}, job.Collection{Name: "moves"}
	deletions := job.Collection{Name: "deletionJobs", BelowDeletion: true}
	for _, c := range []job.Collection{recomputes, deletions} {
		jobtest.Create(t, stores.Open(c), jobtest.Draft("shop", "strategy-7"))
	}
	got, err := stores.Open(recomputes).Job(t.Context(), "shop", "strategy-7")
	jobtest.Same(t, "in its collection", got, err, jobtest.Draft("shop", "strategy-7"))
	_, err = stores.Open(moves).Job(t.Context(), "shop", "strategy-7")
	jobtest.WantError(t, "in another collection", err, job.ErrNotFound)
	for _, left := range []int{1, 0} {
		if names, err := stores.Holding(t.Context(), "shop", 9); err != nil || len(names) != left {
			t.Errorf("left are %v (%v), want %d", names, err, left)
		}
		if err := stores.Forget(t.Context(), "shop"); err != nil {
			t.Error(err)
		}
	}
	got, err = stores.Open(deletions).Job(t.Context(), "shop", "strategy-7")
	jobtest.Same(t, "of the deletion", got, err, jobtest.Draft("shop", "strategy-7"))
}
