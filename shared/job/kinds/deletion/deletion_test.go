package deletion_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// harness is a harness of jobs, with the rows of its app and of apps with similar
// ids in a Bigtable.
type harness struct {
	*jobtest.Harness
	runner    *deletion.Runner
	rows      *rows
	documents documents
}

// neighbours have rows that a deletion of jobtest.App must leave.
var neighbours = []string{"sho", "shop-", "shop-x", "shop0"}

// rows are gated. Each request that deletes some takes a second of the clock.
type rows struct {
	*store.Store
	client *bigtable.Client
	h      *harness
	found  func() // before a verification
}

func (r *rows) DeleteRows(ctx context.Context, of store.AppRows, progress func(int, string) error) error {
	return r.h.Call(ctx, "rows", func() error {
		return r.Store.Rows.DeleteRows(ctx, of, func(n int, last string) error {
			r.h.Now = r.h.Now.Add(time.Second)
			if err := r.h.Call(ctx, "progress", func() error { return nil }); err != nil {
				return err
			}
			return progress(n, last)
		})
	})
}

func (r *rows) FindRows(ctx context.Context, of store.AppRows, limit int) (keys []string, err error) {
	if r.found != nil {
		r.found()
	}
	err = r.h.Call(ctx, "find", func() error {
		keys, err = r.Store.Rows.FindRows(ctx, of, limit)
		return err
	})
	return keys, err
}

// documents are gated; an app's names are its own documents.
type documents struct {
	h     *harness
	names map[string][]string
}

func (d documents) Forget(ctx context.Context, app string) error {
	return d.h.Call(ctx, "forget documents", func() error { delete(d.names, app); return nil })
}

func (d documents) Holding(_ context.Context, app string, _ int) ([]string, error) {
	return d.names[app], nil
}

// details are gated.
type details struct {
	h *jobtest.Harness
	store.Jobs
}

func (d details) PutJobDetails(ctx context.Context, app, region, row, version string, ended bool, value []byte) error {
	return d.h.Call(ctx, "put details", func() error { return d.Jobs.PutJobDetails(ctx, app, region, row, version, ended, value) })
}

func (d details) JobDetails(ctx context.Context, app, region string, versions map[string]string) (found map[string][]byte, err error) {
	err = d.h.Call(ctx, "details", func() (err error) { found, err = d.Jobs.JobDetails(ctx, app, region, versions); return err })
	return found, err
}

func (d details) DropJobDetails(ctx context.Context, app, region, row string, versions ...string) error {
	return d.h.Call(ctx, "drop details", func() error { return d.Jobs.DropJobDetails(ctx, app, region, row, versions...) })
}

func (d details) DropOpenJobDetails(ctx context.Context, app, region, row string) error {
	return d.h.Call(ctx, "drop open details", func() error { return d.Jobs.DropOpenJobDetails(ctx, app, region, row) })
}

func (d details) ForgetJobDetails(ctx context.Context, app, prefix string) error {
	return d.h.Call(ctx, "forget details", func() error { return d.Jobs.ForgetJobDetails(ctx, app, prefix) })
}

// users lists the users of the store's rows.
type users struct{ store.Users }

func newHarness(t *testing.T, s *store.Store, client *bigtable.Client, cfg job.Settings) *harness {
	t.Helper()
	h := &harness{Harness: jobtest.New(t, deletion.Collection, 0, cfg)}
	h.rows = &rows{Store: s, client: client, h: h}
	h.documents = documents{h, map[string][]string{jobtest.App: {"recomputes"}, "shop-": {"keys"}}}
	parts := h.Parts(cfg)
	parts.Users, parts.Jobs = users{s.Users}, job.Detailed(parts.Jobs, details{h.Harness, s.Jobs}, deletion.Collection)
	h.Jobs = job.Detailed(h.Jobs, s.Jobs, deletion.Collection)
	h.runner = deletion.New(parts, h.Config, h.rows, h.documents, 0)
	h.Runner = h.runner.Runner
	if keys, err := s.Rows.FindRows(t.Context(), store.AppRows{App: neighbours[0], Table: store.TableUsers}, 1); err != nil || len(keys) == 0 {
		for _, app := range neighbours { // once for a store
			h.fill(app)
		}
	}
	h.fill(jobtest.App)
	return h
}

var settings = job.Settings{ShardUsers: 2, Budget: time.Hour, Attempts: 8}

// fill writes rows of five users of an app into every table.
func (h *harness) fill(app string) {
	tables, err := store.Tables()
	must.Succeed(h.T, err)
	for _, table := range tables {
		var keys []string
		var muts []*bigtable.Mutation
		for i := range 5 {
			m := bigtable.NewMutation()
			m.Set(table.Families[0].Name, "c", 0, nil)
			keys, muts = append(keys, fmt.Sprintf("%s,u%d,", app, i)), append(muts, m)
		}
		if _, err := h.rows.client.Open(table.Name).ApplyBulk(h.T.Context(), keys, muts); err != nil {
			h.T.Fatal(err)
		}
	}
}

// left counts the kinds of stores that hold an app.
func (h *harness) left(app string) int {
	h.T.Helper()
	left, err := deletion.Left(h.T.Context(), h.rows.Store.Rows, h.documents, app)
	must.Succeed(h.T, err)
	return len(left)
}

func (h *harness) delete(again bool) deletion.Status {
	h.T.Helper()
	status, err := h.runner.Delete(h.T.Context(), jobtest.App, again)
	must.Succeed(h.T, err)
	return status
}

// wantGone checks that the deletion has ended, that nothing but it is left of the
// app, and that the other apps have lost nothing.
func (h *harness) wantGone(what string) {
	h.T.Helper()
	d, err := h.Config.Deletion(h.T.Context(), jobtest.App)
	if err != nil || !d.Ended() {
		h.T.Errorf("%s: deletion %+v (%v), want it ended", what, d, err)
	}
	if n := h.left(jobtest.App); n != 0 {
		h.T.Errorf("%s: %d kinds of stores hold the app", what, n)
	}
	if jobs, err := h.Jobs.List(h.T.Context(), jobtest.App, 9); err != nil || len(jobs) != 0 {
		h.T.Errorf("%s: jobs %+v (%v) are left", what, jobs, err)
	}
	if keys, err := h.rows.Store.Rows.FindRows(h.T.Context(), store.AppRows{App: jobtest.App, Table: store.TableJobs}, 9); err != nil || len(keys) != 0 {
		h.T.Errorf("%s: details %q (%v) of its own jobs are left", what, keys, err)
	}
	tables, _ := store.Tables()
	for _, app := range neighbours {
		for _, table := range tables {
			if keys, err := h.rows.Store.Rows.FindRows(h.T.Context(), store.AppRows{App: app, Table: table.Name}, 9); err != nil || len(keys) != 5 {
				h.T.Errorf("%s: app %s has %q in %s (%v), want five rows", what, app, keys, table.Name, err)
			}
		}
	}
}

// A deletion ends with nothing left, in tasks with enough time and in tasks that run
// out of it. Late rows go too, a second deletion joins the first, and a repeated one
// after the end does nothing.
func TestDeletion(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	tight := settings
	tight.Budget = time.Second
	for name, cfg := range map[string]job.Settings{"roomy": settings, "tight": tight} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, s, client, cfg)
			first, second := h.delete(false), h.delete(false)
			if first.State != job.Planning || !first.StartedAt.Equal(second.StartedAt) || second.Attempt != 1 {
				t.Errorf("deletions %+v and %+v", first, second)
			}
			h.Gate = func(_ context.Context, what string) jobtest.Fault {
				if what == "forget documents" { // all users are deleted
					h.Gate = nil
					h.fill(jobtest.App)
				}
				return jobtest.None
			}
			h.Drain()
			h.wantGone(name)
			tables, err := store.Tables()
			must.Succeed(t, err)
			if d := h.delete(false); !d.Ended() || d.Rows != int64(10*len(tables)) || len(h.Waiting()) != 0 {
				t.Errorf("a repeated deletion: %+v, %d tasks; want it ended, with %d rows", d, len(h.Waiting()), 10*len(tables))
			}
			h.fill(jobtest.App) // as a restore does
			if d := h.delete(true); d.Ended() || d.Attempt != 2 {
				t.Errorf("a deletion again: %+v", d)
			}
			h.Drain()
			h.wantGone("again")
		})
	}
}

// An app without rows is deleted, and one that never existed is not found.
func TestDeletionOfNothing(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	h := newHarness(t, s, client, settings)
	must.Succeed(t, h.Config.CreateApp(t.Context(), config.App{ID: "empty"}))
	if _, err := h.runner.Delete(t.Context(), "empty", false); err != nil {
		t.Fatal(err)
	}
	h.Drain()
	if d, err := h.Config.Deletion(t.Context(), "empty"); err != nil || !d.Ended() || d.Rows != 0 {
		t.Errorf("deletion %+v, %v", d, err)
	}
	if _, err := h.runner.Delete(t.Context(), "nowhere", true); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("an unknown app: %v", err)
	}
}

// Whenever a process dies, and if the queue then loses all tasks, the deletion ends
// all the same.
func TestDeletionSurvivesDeaths(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	step := race.Or(5, 29)
	if testing.Short() {
		step = 17
	}
	for at := 0; ; at += step {
		h := newHarness(t, s, client, settings)
		calls, died := 0, false
		h.Gate = func(ctx context.Context, _ string) jobtest.Fault {
			if calls++; calls > at && !died {
				died = true
				return jobtest.Dies(ctx)
			}
			return jobtest.Alive(ctx)
		}
		_, err := h.runner.Delete(jobtest.Process(t.Context()), jobtest.App, false)
		if err != nil {
			h.Gate = nil
			h.delete(false)
		}
		for range 100 {
			if left := h.Waiting(); len(left) > 0 && (!died || at%3 > 0) {
				_, _ = h.Deliver(t.Context(), left[0])
			} else if died && at%3 == 0 {
				break
			}
		}
		if at%3 == 0 {
			h.Gate = nil
			h.LoseTasks()
			must.Succeed(t, h.runner.Resume(t.Context(), jobtest.App))
		}
		h.Drain()
		h.wantGone(fmt.Sprint("death at call ", at))
		if t.Failed() || !died {
			return
		}
	}
}

// A job that finds the id after it has deleted everything fails and says so. The next
// deletion starts another job.
func TestDeletionFailsLoudly(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	h := newHarness(t, s, client, settings)
	h.delete(false)
	h.rows.found = func() { // another process writes after each pass
		m := bigtable.NewMutation()
		m.Set("o", "c", 0, nil)
		if err := client.Open(store.TableObjects).Apply(t.Context(), jobtest.App+",i,1", m); err != nil {
			t.Error(err)
		}
	}
	h.Drain()
	status, err := h.runner.Status(t.Context(), jobtest.App)
	if err != nil || status.State != job.Failed || !strings.Contains(status.Error, "still hold the app's id") || status.Ended() {
		t.Errorf("status %+v, %v; want a failed job", status, err)
	}
	if err := h.Config.CreateApp(t.Context(), config.App{ID: jobtest.App}); !config.IsDeleted(err) {
		t.Errorf("create the app: %v", err)
	}
	if err := h.runner.Resume(t.Context(), jobtest.App); err != nil || len(h.Waiting()) != 0 {
		t.Errorf("resume: %v, %d tasks; want the failed job left to the operator", err, len(h.Waiting()))
	}
	h.rows.found = nil
	if status := h.delete(false); status.Attempt != 2 || status.State != job.Planning {
		t.Errorf("after the failure: %+v", status)
	}
	h.Drain()
	h.wantGone("after a failure")
}

// The last shard waits until no request of the app can run any more.
func TestLastShardWaits(t *testing.T) {
	s, client := storetest.NewWithClient(t)
	h := newHarness(t, s, client, settings)
	parts := h.Parts(settings)
	parts.Users = users{s.Users}
	h.runner = deletion.New(parts, h.Config, h.rows, h.documents, 2*time.Hour)
	h.Runner = h.runner.Runner
	started := h.delete(false)
	for len(h.Waiting()) > 0 && h.Waiting()[0].Delay == 0 {
		h.DeliverNext(1)
	}
	last := h.Waiting()
	if len(last) != 1 || last[0].Delay < 59*time.Minute || last[0].Delay > time.Hour {
		t.Fatalf("tasks %+v, want one that waits", last) // the harness's clock is an hour ahead
	}
	status, err := h.runner.Status(t.Context(), jobtest.App)
	if err != nil || !status.WaitsUntil.Equal(started.StartedAt.Add(2*time.Hour)) || status.Done != status.Shards-1 {
		t.Errorf("status %+v, %v", status, err)
	}
	if n := h.left(jobtest.App); n != 1 {
		t.Errorf("%d kinds of stores hold the app, want the documents", n)
	}
}
