package job_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
)

func openStored(t *testing.T, r configtest.Records) job.Jobs {
	t.Helper()
	stored, err := documents.NewStored(r)
	must.Succeed(t, err)
	return job.In(stored, jobtest.Collection)
}

// Every change of a stored job passes through its record.
func TestStored(t *testing.T) {
	jobtest.TestJobs(t, func(t *testing.T) job.Jobs { return openStored(t, configtest.Records{}) })
}

func TestStoredJobsOutliveTheProcess(t *testing.T) {
	records := configtest.Records{}
	first := openStored(t, records)
	jobtest.Create(t, first, jobtest.Draft("shop", "strategy-7"))
	must.Succeed(t, first.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: 3, From: "a", State: job.ShardOpen}))
	want, err := first.Job(t.Context(), "shop", "strategy-7")
	must.Succeed(t, err)
	again := openStored(t, records)
	got, err := again.Job(t.Context(), "shop", "strategy-7")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("after a restart (-before +after, %v):\n%s", err, diff)
	}
	if shard, err := again.LastShard(t.Context(), "shop", "strategy-7"); err != nil || shard.N != 3 || shard.From != "a" {
		t.Errorf("after a restart the last shard is %+v, %v", shard, err)
	}
}
