package jobdb_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/jobdb"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/store"
)

// The document of a shard that an earlier version wrote names no user any more once it
// changes. Its fields of other kinds stay.
func testOldShardLosesDetails(t *testing.T, client *firestore.Client, details *store.Store) {
	s := job.Detailed(jobdb.New(client, recomputes), details, recomputes)
	jobtest.Create(t, s, jobtest.Draft("shop", "strategy-7"))
	ref := client.Doc("apps/shop/recomputes/strategy-7/shards/0000003")
	if _, err := ref.Create(t.Context(), map[string]any{
		"n": int64(3), "from": "tok-a", "to": "tok-d", "state": "open", "step": int64(1), "pass": int64(0), "next": "tok-b", "swept": false,
		"lastTry": false, "plannedUsers": int64(4), "visited": int64(5), "users": int64(6), "events": int64(7), "changed": int64(8),
		"left": int64(9), "faulty": int64(10), "stale": int64(11), "faults": []any{"tok-b: bent"}, "result": "tok-x", "error": "",
	}); err != nil {
		t.Fatal(err)
	}
	want := job.Shard{
		N: 3, From: "tok-a", To: "tok-d", State: job.ShardOpen, Step: 1, Next: "tok-b", PlannedUsers: 4, Result: "tok-x",
		Counts: job.Counts{Visited: 5, Users: 6, Events: 7, Changed: 8, Left: 9, Faulty: 10}, Stale: 11, Faults: []string{"tok-b: bent"},
	}
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 3)
	jobtest.Same(t, "old document", got, err, want)
	change := func(s *job.Shard) error { s.Next, s.Visited = "tok-c", 6; return nil }
	if err := change(&want); err != nil {
		t.Fatal(err)
	}
	got, err = s.UpdateShard(t.Context(), "shop", "strategy-7", 3, change)
	jobtest.Same(t, "changed", got, err, want)
	got, err = s.Shard(t.Context(), "shop", "strategy-7", 3)
	jobtest.Same(t, "read again", got, err, want)
	d, err := ref.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fields := d.Data(); strings.Contains(fmt.Sprint(fields), "tok-") || fields["plannedUsers"] != int64(4) || fields["visited"] != int64(6) || fields["details"] == "" {
		t.Errorf("the document is %v", fields)
	}
}

// overtaken are details that another process supersedes before they are read.
type overtaken struct {
	*store.Store
	by func()
}

func (o *overtaken) JobDetails(ctx context.Context, app string, versions map[string]string) (map[string][]byte, error) {
	if do := o.by; do != nil {
		o.by = nil
		do()
	}
	return o.Store.JobDetails(ctx, app, versions)
}

// A change whose document is superseded before its details are read is made to the document
// that follows.
func testSupersededInChange(t *testing.T, client *firestore.Client, details *store.Store) {
	between := &overtaken{Store: details}
	s, other := job.Detailed(jobdb.New(client, moves), between, moves), job.Detailed(jobdb.New(client, moves), details, moves)
	jobtest.Create(t, s, jobtest.Draft("shop", "strategy-7"))
	if err := s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{From: "a", To: "d", Next: "a", State: job.ShardOpen}); err != nil {
		t.Fatal(err)
	}
	between.by = func() {
		if _, err := other.UpdateShard(t.Context(), "shop", "strategy-7", 0, func(s *job.Shard) error { s.Next, s.Users = "b", 1; return nil }); err != nil {
			t.Error(err)
		}
	}
	got, err := s.UpdateShard(t.Context(), "shop", "strategy-7", 0, func(s *job.Shard) error { s.Next, s.Users = s.Next+"c", s.Users+1; return nil })
	want := job.Shard{From: "a", To: "d", Next: "bc", State: job.ShardOpen, Counts: job.Counts{Users: 2}}
	jobtest.Same(t, "the second change", got, err, want)
	got, err = s.Shard(t.Context(), "shop", "strategy-7", 0)
	jobtest.Same(t, "read again", got, err, want)
}
