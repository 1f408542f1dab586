package job_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

func TestDetailed(t *testing.T) {
	s := storetest.New(t)
	jobtest.TestJobs(t, func(t *testing.T) job.Jobs {
		t.Cleanup(func() { forget(t, s) })
		return job.Detailed(job.In(documents.NewMemory(), jobtest.Collection), s.Jobs, jobtest.Collection)
	})
}

// forget deletes the details of the tests' apps.
func forget(t *testing.T, s *store.Store) {
	t.Helper()
	for _, app := range []string{jobtest.App, "shop-", "other", "late", "own", "old"} {
		must.Succeed(t, s.Jobs.ForgetJobDetails(context.WithoutCancel(t.Context()), app, ""))
	}
}

// gatedDetails pass the gate of a harness.
type gatedDetails struct {
	*jobtest.Harness
	store.Jobs
}

func (g gatedDetails) PutJobDetails(ctx context.Context, app, region, row, version string, ended bool, details []byte) error {
	return g.Call(ctx, "put details", func() error { return g.Jobs.PutJobDetails(ctx, app, region, row, version, ended, details) })
}

func (g gatedDetails) JobDetails(ctx context.Context, app, region string, versions map[string]string) (found map[string][]byte, err error) {
	err = g.Call(ctx, "details", func() (err error) { found, err = g.Jobs.JobDetails(ctx, app, region, versions); return err })
	return found, err
}

func (g gatedDetails) DropJobDetails(ctx context.Context, app, region, row string, versions ...string) error {
	return g.Call(ctx, "drop details", func() error { return g.Jobs.DropJobDetails(ctx, app, region, row, versions...) })
}

func (g gatedDetails) DropOpenJobDetails(ctx context.Context, app, region, row string) error {
	return g.Call(ctx, "drop open details", func() error { return g.Jobs.DropOpenJobDetails(ctx, app, region, row) })
}

// divided returns a harness whose store of jobs is divided. Every request to either half
// passes the gate. It returns what the documents alone hold, too.
func divided(t *testing.T, s *store.Store, users int) (*jobtest.Harness, job.Jobs) {
	t.Helper()
	w := jobtest.New(t, jobtest.Collection, users, tight)
	documents := w.Jobs
	w.Runner.Jobs = job.Detailed(w.Runner.Jobs, gatedDetails{w, s.Jobs}, jobtest.Collection)
	w.Jobs = job.Detailed(documents, s.Jobs, jobtest.Collection)
	return w, documents
}

// wantDivided checks that the documents of a job name no user.
func wantDivided(t *testing.T, documents job.Jobs, w *jobtest.Harness) {
	t.Helper()
	j, err := documents.Job(t.Context(), jobtest.App, "strategy-1")
	if err != nil || j.Error != "" {
		t.Errorf("the document of the job says %q, %v", j.Error, err)
	}
	for n := 0; ; n++ {
		d, err := documents.Shard(t.Context(), jobtest.App, "strategy-1", n)
		if errors.Is(err, job.ErrNotFound) && n > 0 {
			return
		}
		if err != nil || d.From+d.To+d.Next+d.Result+d.Error+strings.Join(d.Faults, "") != "" {
			t.Fatalf("the document of shard %d: %+v, %v", n, d, err)
		}
		if s, err := w.Jobs.Shard(t.Context(), jobtest.App, "strategy-1", n); err != nil || s.Details != "" {
			t.Fatalf("shard %d: %+v, %v", n, s, err)
		}
	}
}

// Each single request fails, before or after its effect, alone or with all later ones of its
// process. The job is done all the same, and counts every user once.
func TestFaultAtEveryRequestOfDetails(t *testing.T) {
	race.Skip(t, "TestFaultAtEveryCall has the same goroutines")
	for name, cause := range map[string]func(context.Context) jobtest.Fault{
		"fails":                 func(context.Context) jobtest.Fault { return jobtest.FailBefore },
		"fails, but was done":   func(context.Context) jobtest.Fault { return jobtest.FailAfter },
		"the process ends":      jobtest.Dies,
		"ends, but it was done": func(ctx context.Context) jobtest.Fault { jobtest.Dies(ctx); return jobtest.FailAfter },
	} {
		for inFlight := range 3 {
			t.Run(fmt.Sprintf("%s, %d in flight", name, inFlight), func(t *testing.T) {
				s := storetest.New(t) // of its own: each read of a row passes the deletions since its start
				calls := inFlight + 1
				for at := inFlight; at < calls; at += race.Or(3, 7) { // the three together at each
					w, documents := divided(t, s, 5)
					w.Users["b"].Relapses = 1
					w.Users["c"].Fault, w.Users["e"].Fault = "bent", "broken"
					w.FaultAt(at, &calls, cause)
					untilStarted(t, w, inFlight)
					w.Drain()
					w.Gate = nil
					w.WantDone("strategy-1")
					wantDivided(t, documents, w)
					forget(t, s)
					if t.Failed() {
						t.Fatalf("with request %d", at)
					}
				}
				if calls < 100 {
					t.Errorf("only %d requests were tried", calls)
				}
			})
		}
	}
}

// The same for a job that fails. Its error and that of its shard name a user.
func TestFaultAtEveryRequestUntilJobFails(t *testing.T) {
	s := storetest.New(t)
	calls := 1
	for at := 0; at < calls && !t.Failed(); at += race.Or(1, 7) {
		w, documents := divided(t, s, 5)
		w.Poisoned, w.Poison = "e", errors.New("user e is poisoned")
		w.FaultAt(at, &calls, jobtest.Dies)
		untilStarted(t, w, 1)
		w.Drain()
		w.Gate = nil
		w.WantState("strategy-1", job.Failed, "user e is poisoned")
		wantDivided(t, documents, w)
		forget(t, s)
	}
}

// Of a job that has ended, each row has the version that its document names, and no other.
func TestDetailsOfEndedJobs(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	w, _ := divided(t, s, 9)
	w.Users["c"].Fault = "bent"
	untilStarted(t, w, 2)
	w.Drain()
	j := w.WantDone("strategy-1")
	rows := 0
	err := client.Open(store.TableJobs).ReadRows(t.Context(), bigtable.PrefixRange(jobtest.App+","), func(r bigtable.Row) bool {
		rows++
		if len(r["o"]) != 0 || len(r["e"]) != 1 || !strings.HasPrefix(r.Key(), "shop,recomputes,strategy-1,000000") {
			t.Errorf("row %q: %d versions may change, %d have ended", r.Key(), len(r["o"]), len(r["e"]))
		}
		return true
	})
	if err != nil || rows != j.Totals.Shards || rows < 3 {
		t.Errorf("%d rows of %d shards, %v", rows, j.Totals.Shards, err)
	}
	must.Succeed(t, w.Jobs.Forget(t.Context(), jobtest.App))
	if keys, err := s.Rows.FindRows(t.Context(), store.AppRows{App: jobtest.App, Table: store.TableJobs}, 9); err != nil || len(keys) != 0 {
		t.Errorf("forgotten jobs leave %q, %v", keys, err)
	}
}

// A shard whose details are stored nowhere fails its job, as after a restore of Bigtable. What
// has ended is read without them.
func TestLostDetails(t *testing.T) {
	s := storetest.New(t)
	for tasks := 1; tasks < 4; tasks++ {
		w, _ := divided(t, s, 9)
		untilStarted(t, w, 1)
		w.DeliverNext(tasks)
		forget(t, s)
		w.Drain()
		w.WantState("strategy-1", job.Failed, "")
		forget(t, s)
		if j := w.Find("strategy-1"); !strings.Contains(j.Error, "not stored any more") {
			t.Errorf("after %d tasks the error is %q", tasks, j.Error)
		}
		if jobs, err := w.Jobs.List(t.Context(), jobtest.App, 9); err != nil || len(jobs) != 1 {
			t.Errorf("after %d tasks: %d jobs, %v", tasks, len(jobs), err)
		}
	}
}

// superseding are details that another process supersedes between the read of a document
// and that of its details.
type superseding struct {
	store.Jobs
	before func()
}

func (s *superseding) JobDetails(ctx context.Context, app, region string, versions map[string]string) (map[string][]byte, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	return s.Jobs.JobDetails(ctx, app, region, versions)
}

// A reader whose version is superseded reads the document again.
func TestDetailsAreSuperseded(t *testing.T) {
	table := storetest.New(t)
	documents, ctx, between := job.In(documents.NewMemory(), jobtest.Collection), t.Context(), &superseding{Jobs: table.Jobs}
	s, other := job.Detailed(documents, between, jobtest.Collection), job.Detailed(documents, table.Jobs, jobtest.Collection)
	jobtest.Create(t, s, jobtest.Draft("shop", "strategy-1"))
	for n := range 3 {
		must.Succeed(t, s.CreateShard(ctx, "shop", "strategy-1", job.Shard{N: n, From: "a", To: "d", Next: "a", State: job.ShardOpen}))
	}
	next := "a"
	for name, read := range map[string]func() (job.Shard, error){
		"Shard":     func() (job.Shard, error) { return s.Shard(ctx, "shop", "strategy-1", 2) },
		"LastShard": func() (job.Shard, error) { return s.LastShard(ctx, "shop", "strategy-1") },
		"ShardsIn": func() (job.Shard, error) {
			all, err := s.ShardsIn(ctx, "shop", "strategy-1", job.ShardOpen, 9)
			return all[len(all)-1], err
		},
	} {
		next += "x"
		between.before = func() {
			if _, err := other.UpdateShard(ctx, "shop", "strategy-1", 2, func(s *job.Shard) error { s.Next = next; return nil }); err != nil {
				t.Error(err)
			}
		}
		if got, err := read(); err != nil || got.Next != next || got.From != "a" {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, next)
		}
	}
	between.before = func() {
		if _, err := other.UpdateShard(ctx, "shop", "strategy-1", 0, func(s *job.Shard) error { s.State = job.ShardDone; return nil }); err != nil {
			t.Error(err)
		}
	}
	if open, err := s.ShardsIn(ctx, "shop", "strategy-1", job.ShardOpen, 1); err != nil || len(open) != 1 || open[0].N != 1 {
		t.Errorf("the first open shard: %+v, %v; want shard 1, since 0 has ended", open, err)
	}
}
