package job_test

import (
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/jobtest"
)

// What has not ended never expires, whatever a caller says; what has does when he
// says.
func testExpiry(t *testing.T, s job.Jobs) {
	at := begun.Add(job.Kept)
	eager := draftOf("shop", "strategy-7")
	eager.ExpiresAt = at
	create(t, s, eager)
	wantExpiry := func(what string, want time.Time) {
		t.Helper()
		j, err := s.Job(t.Context(), "shop", "strategy-7")
		same(t, what, j.ExpiresAt, err, want)
	}
	wantExpiry("a new job", time.Time{})
	for _, state := range []job.State{job.Planning, job.Running} {
		j, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error { j.State, j.ExpiresAt = state, at; return nil })
		same(t, "what Update returns", j.ExpiresAt, err, time.Time{})
		wantExpiry(string(state), time.Time{})
	}
	j, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error {
		j.State, j.ExpiresAt = job.Done, at.Add(999).In(time.FixedZone("", 3600))
		return nil
	})
	same(t, "what Update returns", j.ExpiresAt, err, at)
	wantExpiry("done", at)
}

func testShardExpiry(t *testing.T, s job.Jobs) {
	at := begun.Add(job.Kept)
	create(t, s, draftOf("shop", "strategy-7"))
	for n, c := range []struct {
		created, becomes job.ShardState
		want             time.Time
	}{
		{job.ShardOpen, job.ShardOpen, time.Time{}},
		{job.ShardOpen, job.ShardDone, at},
		{job.ShardOpen, job.ShardFailed, at},
		{job.ShardDone, "", at},
	} {
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: n, State: c.created, ExpiresAt: at}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Shard(t.Context(), "shop", "strategy-7", n)
		if want := c.want; c.becomes != "" {
			same(t, "a new shard", got.ExpiresAt, err, time.Time{})
			got, err = s.UpdateShard(t.Context(), "shop", "strategy-7", n, func(s *job.Shard) error { s.State, s.ExpiresAt = c.becomes, at; return nil })
			same(t, "what UpdateShard returns", got.ExpiresAt, err, want)
		}
		got, err = s.Shard(t.Context(), "shop", "strategy-7", n)
		same(t, "shard "+string(got.State), got.ExpiresAt, err, c.want)
	}
}

// testExpiryFields looks at the documents themselves, as TTL does: a field that is
// there but zero would be long over.
func testExpiryFields(t *testing.T, client *firestore.Client) {
	s := job.NewFirestore(client, "recomputes")
	at := begun.Add(job.Kept)
	const doc = "apps/shop/recomputes/strategy-7"
	want := func(when, path string, ended bool) {
		t.Helper()
		snapshot, err := client.Doc(path).Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		field, there := snapshot.Data()["expiresAt"]
		if got, isTime := field.(time.Time); there != ended || ended && (!isTime || !got.Equal(at)) {
			t.Errorf("%s, %s: expiresAt is %v, there: %v", when, path, field, there)
		}
	}
	create(t, s, draftOf("shop", "strategy-7"))
	want("created", doc, false)
	move(t, s, "strategy-7", job.Running)
	want("running", doc, false)
	for n, state := range []job.ShardState{job.ShardOpen, job.ShardOpen, job.ShardDone} {
		if err := s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: n, State: state, ExpiresAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	want("created", doc+"/shards/0000000", false)
	want("created done", doc+"/shards/0000002", true)
	for n, state := range []job.ShardState{job.ShardOpen, job.ShardFailed} {
		if _, err := s.UpdateShard(t.Context(), "shop", "strategy-7", n, func(s *job.Shard) error { s.State, s.ExpiresAt, s.Next = state, at, "b"; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	want("at a checkpoint", doc+"/shards/0000000", false)
	want("failed", doc+"/shards/0000001", true)
	if _, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error { j.State, j.ExpiresAt = job.Failed, at; return nil }); err != nil {
		t.Fatal(err)
	}
	want("failed", doc, true)
}

// Jobs and shards expire by the real clock, some time after each has ended, in
// whichever way it did.
func TestExpiry(t *testing.T) {
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC) // years from the engine's
	for name, c := range map[string]struct {
		users int
		setUp func(*jobtest.World)
		want  job.State
	}{
		"done":            {10, func(*jobtest.World) {}, job.Done},
		"without users":   {0, func(*jobtest.World) {}, job.Done},
		"failed":          {10, func(w *jobtest.World) { w.Poisoned = "e" }, job.Failed},
		"fails to verify": {10, func(w *jobtest.World) { w.Runner.Work = hopeless{w.Runner.Work} }, job.Failed},
		"stays stale":     {10, func(w *jobtest.World) { w.Users["b"].Relapses = 99 }, job.Failed},
		"superseded":      {10, func(w *jobtest.World) { w.SetStrategy(2) }, job.Superseded},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, c.users, tight)
			w.Clock = func() time.Time { return now }
			seen := map[int]time.Time{} // when each shard expires, and as -1 the job
			for n := 0; len(w.Waiting()) > 0; n++ {
				if now = now.Add(time.Minute); n == 1 {
					c.setUp(w)
				}
				_, _ = w.Deliver(t.Context(), w.Waiting()[0]) // an error has it come again
				wantExpiries(t, w, seen, now.Add(job.Kept))
			}
			w.WantState("strategy-1", c.want, "")
		})
	}
}

// wantExpiries checks that whatever has ended since the last look expires at a time,
// all that had ended before as it did then, and that nothing else expires.
func wantExpiries(t *testing.T, w *jobtest.World, seen map[int]time.Time, at time.Time) {
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
