package jobtest

import (
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/job"
)

// An unfinished job never expires, whatever ExpiresAt the caller sets. An ended
// job expires at the caller's time.
func testExpiry(t *testing.T, s job.Jobs) {
	at := begun.Add(job.Kept)
	eager := Draft("shop", "strategy-7")
	eager.ExpiresAt = at
	Create(t, s, eager)
	wantExpiry := func(what string, want time.Time) {
		t.Helper()
		j, err := s.Job(t.Context(), "shop", "strategy-7")
		Same(t, what, j.ExpiresAt, err, want)
	}
	wantExpiry("a new job", time.Time{})
	for _, state := range []job.State{job.Planning, job.Running} {
		change := func(j *job.Job) error { j.State, j.ExpiresAt = state, at; return nil }
		j, err := s.Update(t.Context(), "shop", "strategy-7", change)
		Same(t, "result of Update", j.ExpiresAt, err, time.Time{})
		wantExpiry(string(state), time.Time{})
	}
	j, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error {
		j.State, j.ExpiresAt = job.Done, at.Add(999).In(time.FixedZone("", 3600))
		return nil
	})
	Same(t, "result of Update", j.ExpiresAt, err, at)
	wantExpiry("done", at)
}

func testShardExpiry(t *testing.T, s job.Jobs) {
	at := begun.Add(job.Kept)
	Create(t, s, Draft("shop", "strategy-7"))
	for n, c := range []struct {
		created, becomes job.ShardState
		want             time.Time
	}{
		{job.ShardOpen, job.ShardOpen, time.Time{}},
		{job.ShardOpen, job.ShardDone, at},
		{job.ShardOpen, job.ShardFailed, at},
		{job.ShardDone, "", at},
	} {
		created := job.Shard{N: n, State: c.created, ExpiresAt: at}
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", created); err != nil {
			t.Fatal(err)
		}
		got, err := s.Shard(t.Context(), "shop", "strategy-7", n)
		if want := c.want; c.becomes != "" {
			Same(t, "a new shard", got.ExpiresAt, err, time.Time{})
			change := func(s *job.Shard) error { s.State, s.ExpiresAt = c.becomes, at; return nil }
			got, err = s.UpdateShard(t.Context(), "shop", "strategy-7", n, change)
			Same(t, "result of UpdateShard", got.ExpiresAt, err, want)
		}
		got, err = s.Shard(t.Context(), "shop", "strategy-7", n)
		Same(t, "shard "+string(got.State), got.ExpiresAt, err, c.want)
	}
}
