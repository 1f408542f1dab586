package job_test

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
)

// Jobs and shards expire by the real clock, job.Kept after their end, in every
// final state.
func TestExpiry(t *testing.T) {
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC) // years after the engine's clock
	for name, c := range map[string]struct {
		users int
		setUp func(*jobtest.Harness)
		want  job.State
	}{
		"done":            {10, func(*jobtest.Harness) {}, job.Done},
		"without users":   {0, func(*jobtest.Harness) {}, job.Done},
		"failed":          {10, func(w *jobtest.Harness) { w.Poisoned = "e" }, job.Failed},
		"fails to verify": {10, func(w *jobtest.Harness) { w.Runner.Work = hopeless{w.Runner.Work} }, job.Failed},
		"stays stale":     {10, func(w *jobtest.Harness) { w.Users["b"].Relapses = 99 }, job.Failed},
		"superseded":      {10, func(w *jobtest.Harness) { w.SetStrategy(2) }, job.Superseded},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, c.users, tight)
			w.Clock = func() time.Time { return now }
			seen := map[int]time.Time{} // when each shard expires, and as -1 the job
			for n := 0; len(w.Waiting()) > 0; n++ {
				if now = now.Add(time.Minute); n == 1 {
					c.setUp(w)
				}
				_, _ = w.Deliver(t.Context(), w.Waiting()[0]) // after an error it is delivered again
				wantExpiries(t, w, seen, now.Add(job.Kept))
			}
			w.WantState("strategy-1", c.want, "")
		})
	}
}

// wantExpiries checks that jobs and shards that have ended since the last call
// expire at the given time, that earlier ones keep their time, and that
// unfinished ones do not expire.
func wantExpiries(t *testing.T, w *jobtest.Harness, seen map[int]time.Time, at time.Time) {
	t.Helper()
	check := func(n int, ended bool, got time.Time) {
		if _, before := seen[n]; ended && !before {
			seen[n] = at
		}
		if !got.Equal(seen[n]) {
			t.Errorf("shard %d, ended: %v, expires %v, want %v", n, ended, got, seen[n])
		}
	}
	j := w.Find("strategy-1")
	check(-1, j.State.Ended(), j.ExpiresAt)
	for _, state := range []job.ShardState{job.ShardOpen, job.ShardDone, job.ShardFailed} {
		shards, err := w.Jobs.ShardsIn(t.Context(), jobtest.App, "strategy-1", state, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range shards {
			check(s.N, state != job.ShardOpen, s.ExpiresAt)
		}
	}
}
