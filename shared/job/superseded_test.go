package job_test

import (
	"context"
	"testing"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/store"
)

// overtaken are details that another process supersedes before they are read.
type overtaken struct {
	store.Jobs
	by func()
}

func (o *overtaken) JobDetails(ctx context.Context, app, region string, versions map[string]string) (map[string][]byte, error) {
	if do := o.by; do != nil {
		o.by = nil
		do()
	}
	return o.Jobs.JobDetails(ctx, app, region, versions)
}

// A change whose document is superseded before its details are read is made to the document
// that follows.
func testSupersededInChange(t *testing.T, client *firestore.Client, details *store.Store) {
	between := &overtaken{Jobs: details.Jobs}
	s, other := job.Detailed(job.In(documentdb.New(client), moves), between, moves), job.Detailed(job.In(documentdb.New(client), moves), details.Jobs, moves)
	jobtest.Create(t, s, jobtest.Draft("shop", "strategy-7"))
	if err := s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{From: "a", To: "d", Next: "a", State: job.ShardOpen}); err != nil {
		t.Fatal(err)
	}
	between.by = func() {
		if _, err := other.UpdateShard(t.Context(), "shop", "strategy-7", 0, func(s *job.Shard) error { s.Next, s.Counts = "b", job.Counts{"users": 1}; return nil }); err != nil {
			t.Error(err)
		}
	}
	got, err := s.UpdateShard(t.Context(), "shop", "strategy-7", 0, func(s *job.Shard) error {
		s.Next, s.Counts = s.Next+"c", s.Counts.Plus(job.Counts{"users": 1})
		return nil
	})
	want := job.Shard{From: "a", To: "d", Next: "bc", State: job.ShardOpen, Counts: job.Counts{"users": 2}}
	jobtest.Same(t, "the second change", got, err, want)
	got, err = s.Shard(t.Context(), "shop", "strategy-7", 0)
	jobtest.Same(t, "read again", got, err, want)
}
