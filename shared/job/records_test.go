package job_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/configtest"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

var storedCollection = job.NewCollection[jobtest.Params, jobtest.Counts]("recomputes")

func openStored(t *testing.T, r configtest.Records) job.Jobs {
	t.Helper()
	stores, err := job.NewStored(r)
	if err != nil {
		t.Fatal(err)
	}
	jobs := stores.Open(storedCollection)
	if err := stores.Err(); err != nil {
		t.Fatal(err)
	}
	return jobs
}

// Every change of a stored job passes through its record.
func TestStored(t *testing.T) {
	jobtest.TestJobs(t, func(t *testing.T) job.Jobs { return openStored(t, configtest.Records{}) })
}

func TestStoredJobsOutliveTheProcess(t *testing.T) {
	records := configtest.Records{}
	first := openStored(t, records)
	jobtest.Create(t, first, jobtest.Draft("shop", "strategy-7"))
	if err := first.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: 3, From: "a", State: job.ShardOpen}); err != nil {
		t.Fatal(err)
	}
	want, err := first.Job(t.Context(), "shop", "strategy-7")
	if err != nil {
		t.Fatal(err)
	}
	again := openStored(t, records)
	got, err := again.Job(t.Context(), "shop", "strategy-7")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("after a restart (-before +after, %v):\n%s", err, diff)
	}
	if shard, err := again.LastShard(t.Context(), "shop", "strategy-7"); err != nil || shard.N != 3 || shard.From != "a" {
		t.Errorf("after a restart the last shard is %+v, %v", shard, err)
	}
}

func TestExpiredJobsAreDeletedFromTheirRecords(t *testing.T) {
	records := configtest.Records{}
	first := openStored(t, records)
	jobtest.Create(t, first, jobtest.Draft("shop", "strategy-7"))
	for name, value := range records { // the job ended long ago
		var r struct{ Job, Params map[string]any }
		err := json.Unmarshal(value, &r)
		r.Job["ExpiresAt"] = time.Now().Add(-time.Hour)
		changed, failed := json.Marshal(r)
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		records[name] = changed
	}
	_, err := openStored(t, records).Job(t.Context(), "shop", "strategy-7")
	jobtest.WantError(t, "an expired job after a restart", err, job.ErrNotFound)
	if len(records) != 0 {
		t.Errorf("%d records are left", len(records))
	}
}
