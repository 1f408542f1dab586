package jobdb_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/jobdb"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/local/gcloudtest"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// oldDocument is the document of a job as it was written when all kinds of jobs
// had the same fields, with the fields of a kind set.
func oldDocument(id string, set map[string]any) map[string]any {
	document := map[string]any{
		"app": "shop", "id": id, "kind": "", "state": "running", "concurrency": int64(0),
		"trigger": "", "strategyVersion": int64(0), "retentionDays": int64(90), "onlyStale": false, "maintain": false,
		"from": "", "to": "", "rate": int64(0), "since": time.Time{},
		"planStep": int64(3), "startedAt": started, "finishedAt": time.Time{}, "error": "",
		"totals": map[string]any{
			"shards": int64(0), "done": int64(0), "failed": int64(0), "plannedUsers": int64(0), "visited": int64(0), "users": int64(0),
			"events": int64(0), "changed": int64(0), "left": int64(0), "faulty": int64(0), "stale": int64(0),
		},
	}
	maps.Copy(document, set)
	return document
}

var (
	started = time.Date(2026, 11, 21, 3, 0, 0, 123456000, time.UTC)
	since   = started.AddDate(0, 0, -90)
)

// Documents of each kind that earlier versions wrote are read with their
// parameters, and documents written now have the same fields and values, for
// earlier versions.
func testOldDocuments(t *testing.T, client *firestore.Client) {
	window := job.LogWindow{RetentionDays: 90, Since: since}
	totals := map[string]any{
		"shards": int64(1), "done": int64(2), "failed": int64(3), "plannedUsers": int64(4), "visited": int64(5), "users": int64(6),
		"events": int64(7), "changed": int64(8), "left": int64(9), "faulty": int64(10), "stale": int64(11),
	}
	for name, c := range map[string]struct {
		collection job.Collection
		document   map[string]any
		want       job.Job
	}{
		"recompute": {
			recompute.Collection,
			oldDocument("nightly-2026-11-21", map[string]any{
				"trigger": "nightly", "strategyVersion": int64(7), "onlyStale": true, "maintain": true,
			}),
			job.Job{
				App: "shop", ID: "nightly-2026-11-21", State: job.Running, PlanStep: 3, StartedAt: started,
				Params: recompute.Params{
					Trigger: recompute.Nightly, StrategyVersion: 7, RetentionDays: 90, OnlyStale: true, Maintain: true,
				},
			},
		},
		"backfill": {
			migration.Collection,
			oldDocument("backfill-1", map[string]any{
				"kind": "backfill", "concurrency": int64(4), "from": "wide", "to": "narrow", "rate": int64(1000), "since": since,
			}),
			job.Job{
				App: "shop", ID: "backfill-1", Kind: "backfill", State: job.Running, Concurrency: 4, PlanStep: 3, StartedAt: started,
				Params: migration.Params{From: schema.Wide, To: schema.Narrow, Rate: 1000, LogWindow: window},
			},
		},
		"drop that has ended": {
			migration.Collection,
			oldDocument("drop-1", map[string]any{
				"kind": "drop", "state": "failed", "concurrency": int64(4), "from": "narrow", "to": "wide", "totals": totals,
				"finishedAt": started, "expiresAt": started.Add(job.Kept), "error": "why",
			}),
			job.Job{
				App: "shop", ID: "drop-1", Kind: "drop", State: job.Failed, Concurrency: 4, PlanStep: 3,
				StartedAt: started, FinishedAt: started, ExpiresAt: started.Add(job.Kept), Error: "why",
				Params: migration.Params{From: schema.Narrow, To: schema.Wide, LogWindow: job.LogWindow{RetentionDays: 90}},
				Totals: job.Totals{Shards: 1, Done: 2, Failed: 3, PlannedUsers: 4, Stale: 11,
					Counts: job.Counts{Visited: 5, Users: 6, Events: 7, Changed: 8, Left: 9, Faulty: 10}},
			},
		},
		"re-enrichment": {
			reenrich.Collection,
			oldDocument("reenrich-1", map[string]any{"kind": "dryRun", "concurrency": int64(4), "since": since}),
			job.Job{
				App: "shop", ID: "reenrich-1", Kind: reenrich.DryRun, State: job.Running, Concurrency: 4, PlanStep: 3, StartedAt: started,
				Params: reenrich.Params{LogWindow: window},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := jobdb.New(client, c.collection)
			ref := client.Doc("apps/shop/" + c.collection.Name + "/" + c.want.ID)
			if _, err := ref.Create(t.Context(), c.document); err != nil {
				t.Fatal(err)
			}
			got, err := s.Job(t.Context(), "shop", c.want.ID)
			jobtest.Same(t, "old document", got, err, c.want)
			if _, err := ref.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}

			draft := c.want
			draft.State = job.Planning
			jobtest.Create(t, s, draft)
			update := func(j *job.Job) error {
				if c.want.State.Ended() {
					j.State = job.Running
				} else {
					j.State = c.want.State
				}
				return nil
			}
			if _, err := s.Update(t.Context(), "shop", c.want.ID, update); err != nil {
				t.Fatal(err)
			}
			if c.want.State.Ended() {
				if _, err := s.Update(t.Context(), "shop", c.want.ID, func(j *job.Job) error { *j = c.want; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			snapshot, err := ref.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for field, value := range snapshot.Data() {
				if slices.Contains([]string{"queue", "queuedAt", "runningAt"}, field) {
					continue // earlier versions leave out what they do not know
				}
				if diff := cmp.Diff(c.document[field], value); diff != "" {
					t.Errorf("field %s, old and new document (-old +new):\n%s", field, diff)
				}
			}
		})
	}
}

// A shard that earlier versions wrote is read, and a shard written now has the
// same fields.
func TestOldShard(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", gcloudtest.Firestore(t))
	client := database(t)
	document := map[string]any{
		"n": int64(3), "from": "a", "to": "d", "state": "open", "step": int64(1), "pass": int64(2), "next": "b", "swept": true,
		"lastTry": true, "plannedUsers": int64(4), "visited": int64(5), "users": int64(6), "events": int64(7), "changed": int64(8),
		"left": int64(9), "faulty": int64(10), "stale": int64(11), "faults": []any{"b: bent"}, "error": "",
	}
	want := job.Shard{
		N: 3, From: "a", To: "d", State: job.ShardOpen, Step: 1, Pass: 2, Next: "b", Processed: true, LastTry: true, PlannedUsers: 4,
		Counts: job.Counts{Visited: 5, Users: 6, Events: 7, Changed: 8, Left: 9, Faulty: 10}, Stale: 11, Faults: []string{"b: bent"},
	}
	s := jobdb.New(client, recomputes)
	jobtest.Create(t, s, jobtest.Draft("shop", "strategy-7"))
	ref := client.Doc("apps/shop/recomputes/strategy-7/shards/0000003")
	if _, err := ref.Create(t.Context(), document); err != nil {
		t.Fatal(err)
	}
	got, err := s.Shard(t.Context(), "shop", "strategy-7", 3)
	jobtest.Same(t, "old document", got, err, want)
	if _, err := ref.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateShard(t.Context(), "shop", "strategy-7", want); err != nil {
		t.Fatal(err)
	}
	snapshot, err := ref.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(document, snapshot.Data()); diff != "" {
		t.Errorf("new document (-old +new):\n%s", diff)
	}
}
