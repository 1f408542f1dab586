package jobs_test

import (
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/backend/jobs"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/move"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// A function that counts the jobs before another one knows the collections of all kinds by name.
func TestQueuedNamesAllKinds(t *testing.T) {
	b := functiontest.Start(t).Backends
	names := []string{move.Collection.Name} // without regions there is no runner
	jobs.New(b.Base, func(c job.Collection) job.Runner {
		names = append(names, c.Name)
		return job.Runner{}
	}, b.Profiles, nil)
	if slices.Sort(names); !slices.Equal(names, job.Queued) {
		t.Errorf("jobs of %q have a runner, those of %q are counted", names, job.Queued)
	}
}
