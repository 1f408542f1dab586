package job_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

func TestMemory(t *testing.T) {
	jobtest.TestJobs(t, func(*testing.T) job.Jobs { return job.In(documents.NewMemory(), jobtest.Collection) })
}

// Each collection has a store of its own. An app's jobs are deleted in all but those of
// its deletion.
func TestMemories(t *testing.T) {
	store := documents.NewMemory()
	jobs := config.Documents{Store: store, Keys: documents.NewMemory()}
	recomputes, moves := jobtest.Collection, job.NewCollection[jobtest.Params, jobtest.Counts]("moves")
	deletions := job.NewCollection[jobtest.Params, jobtest.Counts]("deletionJobs").OfDeletion()
	for _, c := range []job.Collection{recomputes, deletions} {
		jobtest.Create(t, job.In(store, c), jobtest.Draft("shop", "strategy-7"))
	}
	got, err := job.In(store, recomputes).Job(t.Context(), "shop", "strategy-7")
	jobtest.Same(t, "in its collection", got, err, jobtest.Draft("shop", "strategy-7"))
	_, err = job.In(store, moves).Job(t.Context(), "shop", "strategy-7")
	jobtest.WantError(t, "in another collection", err, job.ErrNotFound)
	for _, left := range []int{1, 0} {
		if names, err := jobs.Holding(t.Context(), "shop", 9); err != nil || len(names) != left {
			t.Errorf("left are %v (%v), want %d", names, err, left)
		}
		if err := jobs.Forget(t.Context(), "shop"); err != nil {
			t.Error(err)
		}
	}
	got, err = job.In(store, deletions).Job(t.Context(), "shop", "strategy-7")
	jobtest.Same(t, "of the deletion", got, err, jobtest.Draft("shop", "strategy-7"))
}
