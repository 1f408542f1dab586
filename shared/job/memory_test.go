package job_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/jobtest"
)

func TestMemory(t *testing.T) {
	jobtest.TestJobs(t, func(*testing.T) job.Jobs { return job.NewMemory() })
}

// Each collection has a store of its own.
func TestMemories(t *testing.T) {
	stores := job.NewMemories()
	recomputes, moves := job.Collection{Name: "recomputes"}, job.Collection{Name: "moves"}
	jobtest.Create(t, stores(recomputes), jobtest.Draft("shop", "strategy-7"))
	got, err := stores(recomputes).Job(t.Context(), "shop", "strategy-7")
	jobtest.Same(t, "in its collection", got, err, jobtest.Draft("shop", "strategy-7"))
	_, err = stores(moves).Job(t.Context(), "shop", "strategy-7")
	jobtest.WantError(t, "in another collection", err, job.ErrNotFound)
}
