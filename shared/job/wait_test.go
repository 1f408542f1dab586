package job_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// running is a job that began to run at noon and has visited some of its users.
func running(planned, visited int64) job.Job {
	return job.Job{State: job.Running, RunningAt: jobtest.Noon,
		Totals: job.Totals{PlannedUsers: planned, Counts: job.Counts{"users": visited}}}
}

func TestEndEstimate(t *testing.T) {
	at := func(d time.Duration) time.Time { return jobtest.Noon.Add(d) }
	for name, c := range map[string]struct {
		job       job.Job
		now, want time.Time
	}{
		"a quarter":              {running(400, 100), at(time.Minute), at(4 * time.Minute)},
		"nobody visited":         {running(400, 0), at(time.Minute), time.Time{}},
		"all visited":            {running(400, 400), at(time.Minute), time.Time{}},
		"more than planned":      {running(400, 500), at(time.Minute), time.Time{}},
		"no users":               {running(0, 0), at(time.Minute), time.Time{}},
		"too early":              {running(400, 100), at(time.Second), time.Time{}},
		"a clock that is behind": {running(400, 100), at(-time.Hour), time.Time{}},
		"centuries":              {running(1e9, 1), at(24 * time.Hour), time.Time{}},
		"no time of running":     {job.Job{State: job.Running, Totals: running(400, 100).Totals}, at(time.Minute), time.Time{}},
		"planning":               {job.Job{State: job.Planning, RunningAt: jobtest.Noon, Totals: running(400, 100).Totals}, at(time.Minute), time.Time{}},
		"cancelled":              {job.Job{State: job.Cancelled, RunningAt: jobtest.Noon, Totals: running(400, 100).Totals}, at(time.Minute), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.job.EndEstimate(c.now); !got.Equal(c.want) {
				t.Errorf("estimate %v, want %v", got, c.want)
			}
		})
	}
}

// At a steady rate the estimate stays and the time left falls to nothing. More
// visited users at one instant never move the end away.
func TestEndEstimateFalls(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		planned, perSecond := 10+rng.Int64N(1e7), 1+rng.Int64N(1000)
		end := jobtest.Noon.Add(time.Duration(planned) * time.Second / time.Duration(perSecond))
		left := time.Duration(1 << 62)
		for visited := 2 * perSecond; visited < planned; visited += max(1, planned/20/perSecond) * perSecond {
			now := jobtest.Noon.Add(time.Duration(visited/perSecond) * time.Second)
			got := running(planned, visited).EndEstimate(now)
			if got.Sub(end).Abs() > time.Microsecond+end.Sub(jobtest.Noon)/1e9 {
				t.Fatalf("seed %d: end %v after %d of %d users, want %v", seed, got, visited, planned, end)
			}
			if got.Sub(now) >= left {
				t.Fatalf("seed %d: %v left after %v", seed, got.Sub(now), left)
			}
			left = got.Sub(now)
			if more := running(planned, visited+1).EndEstimate(now); more.After(got) {
				t.Fatalf("seed %d: one more user moves the end from %v to %v", seed, got, more)
			}
		}
	}
}

// A job has a place from when its first task is due until it ends.
func TestDue(t *testing.T) {
	noon := jobtest.Noon
	for name, c := range map[string]struct {
		job  job.Job
		want bool
	}{
		"due":         {job.Job{State: job.Planning, QueuedAt: noon}, true},
		"at work":     {job.Job{State: job.Running, QueuedAt: noon.Add(-time.Hour)}, true},
		"not yet":     {job.Job{State: job.Planning, QueuedAt: noon.Add(time.Microsecond)}, false},
		"ended":       {job.Job{State: job.Done, QueuedAt: noon}, false},
		"of long ago": {job.Job{State: job.Running}, false},
	} {
		if got := c.job.Due(noon); got != c.want {
			t.Errorf("%s: due %t, want %t", name, got, c.want)
		}
	}
}
