package stack_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentexport"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// A process that dies after it has stored a job, or a queue that loses the job's first task, leaves
// a job that nothing continues, until the nightly round enqueues the task again.
func TestLostExportIsResumed(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond})
	b, ctx := s.Backends, t.Context()
	lost, err := b.Exports.Create(ctx, job.Job{
		App: "demo", ID: job.NewID("export", b.Now()), Concurrency: 1,
		Params: segmentexport.Params{Segment: "reds", Where: `{"filter":"color:Red","above":0}`},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	later := lost
	later.QueuedAt = b.Now().Add(1)
	work(t, s, "/nightly", `{"spread":"0s"}`)
	waitForJobs(t, s, b.Exports.Jobs)
	if j, err := b.Exports.Find(ctx, "demo", lost.ID); err != nil || !j.State.Ended() {
		t.Errorf("the export is %s, %v: want an end", j.State, err)
	}
	if n, err := b.Jobs.Before(ctx, later); n != 0 || err != nil {
		t.Errorf("%d jobs before a later one, %v", n, err)
	}
}
