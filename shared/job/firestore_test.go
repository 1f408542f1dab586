package job_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/affinityengine/affinity/shared/app/documents/documentdb"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
)

// Collections of jobs of the harness.
var (
	moves = job.NewCollection[jobtest.Params, jobtest.Counts]("moves")
)

// All tests run against one official emulator, each on a database of its own.
func TestFirestore(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	jobtest.TestJobs(t, func(t *testing.T) job.Jobs { return job.In(documentdb.New(database(t)), jobtest.Collection) })
	t.Run("Collections", func(t *testing.T) {
		client := database(t)
		jobtest.Create(t, job.In(documentdb.New(client), jobtest.Collection), jobtest.Draft("shop", "strategy-7"))
		_, err := job.In(documentdb.New(client), moves).Job(t.Context(), "shop", "strategy-7")
		jobtest.WantError(t, "in another collection", err, job.ErrNotFound)
		if _, err := client.Doc("apps/shop/recomputes/strategy-7").Get(t.Context()); err != nil {
			t.Errorf("its document: %v", err)
		}
	})
	t.Run("ExpiryFields", func(t *testing.T) { testExpiryFields(t, database(t)) })
	details := storetest.New(t)
	t.Run("Detailed", func(t *testing.T) {
		jobtest.TestJobs(t, func(t *testing.T) job.Jobs {
			t.Cleanup(func() {
				if err := details.Jobs.ForgetJobDetails(context.WithoutCancel(t.Context()), "shop", ""); err != nil {
					t.Error(err)
				}
			})
			return job.Detailed(job.In(documentdb.New(database(t)), jobtest.Collection), details.Jobs, jobtest.Collection)
		})
	})
	t.Run("SupersededInChange", func(t *testing.T) { testSupersededInChange(t, database(t), details) })
}

// database returns a new database.
func database(t *testing.T) *firestore.Client {
	client, err := firestore.NewClient(t.Context(), "affinity-"+strings.ToLower(rand.Text()))
	must.Succeed(t, err)
	must.CloseAtEnd(t, client)
	return client
}

// testExpiryFields reads the documents as TTL does: TTL takes a zero time for a
// time that has passed.
func testExpiryFields(t *testing.T, client *firestore.Client) {
	s := job.In(documentdb.New(client), jobtest.Collection)
	at := time.Date(2026, 11, 21, 3, 0, 0, 123456000, time.UTC).Add(job.Kept)
	const doc = "apps/shop/recomputes/strategy-7"
	want := func(when, path string, ended bool) {
		t.Helper()
		snapshot, err := client.Doc(path).Get(t.Context())
		must.Succeed(t, err)
		field, there := snapshot.Data()["expiresAt"]
		if got, isTime := field.(time.Time); there != ended || ended && (!isTime || !got.Equal(at)) {
			t.Errorf("%s, %s: expiresAt is %v, there: %v", when, path, field, there)
		}
	}
	jobtest.Create(t, s, jobtest.Draft("shop", "strategy-7"))
	want("created", doc, false)
	if _, err := s.Update(t.Context(), "shop", "strategy-7", func(j *job.Job) error { j.State = job.Running; return nil }); err != nil {
		t.Fatal(err)
	}
	want("running", doc, false)
	for n, state := range []job.ShardState{job.ShardOpen, job.ShardOpen, job.ShardDone} {
		must.Succeed(t, s.CreateShard(t.Context(), "shop", "strategy-7", job.Shard{N: n, State: state, ExpiresAt: at}))
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
