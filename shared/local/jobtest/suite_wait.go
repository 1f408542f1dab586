package jobtest

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
)

// Only unfinished jobs of the queue that were due earlier are before a job, those of
// any app. A job that is created later changes nothing.
func testBefore(t *testing.T, s job.Jobs) {
	due := func(app, id, queue string, at time.Time) job.Job {
		j := Draft(app, id)
		j.Queue, j.QueuedAt = queue, at
		Create(t, s, j)
		return j
	}
	before := func(want int) {
		t.Helper()
		got, err := s.Before(t.Context(), "", begun.Add(time.Minute))
		Same(t, "jobs before", got, err, want)
	}
	before(0)
	due("shop", "manual-1", "", begun.Add(time.Minute)) // itself
	before(0)
	due("shop", "manual-2", "", begun)
	due("other", "manual-1", "", begun.Add(time.Minute-time.Microsecond))
	before(2)
	due("late", "manual-1", "", begun.Add(time.Hour))
	due("own", "manual-1", "own", begun)
	Create(t, s, Draft("undue", "manual-1")) // it has no first task
	before(2)
	got, err := s.Before(t.Context(), "own", begun.Add(time.Minute))
	Same(t, "jobs before in another queue", got, err, 1)

	move(t, s, "manual-2", job.Running)
	before(2)
	move(t, s, "manual-2", job.Done)
	before(1)
	running, err := s.Update(t.Context(), "other", "manual-1", func(j *job.Job) error {
		j.State, j.RunningAt = job.Running, begun.Add(time.Hour+time.Nanosecond)
		return nil
	})
	Same(t, "time of running", running.RunningAt, err, begun.Add(time.Hour))
	read, err := s.Job(t.Context(), "other", "manual-1")
	Same(t, "job", read, err, running)
	Same(t, "time of its first task", read.QueuedAt, err, begun.Add(time.Minute-time.Microsecond))
}
