package stack_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// One more kind of jobs, with all that it needs: it measures the tokens of an app's users.
var measures = job.NewCollection[measureParams, measured]("measures")

type measured struct{ Users, Bytes int64 }

type measureParams struct {
	Why string `firestore:"why"`
}

func (measureParams) LogAttrs() []slog.Attr { return nil }

type measure struct {
	job.Plain
	users job.Users
}

func (w measure) Process(ctx context.Context, _ job.Job, app config.App, s job.Shard, _ time.Time,
	_ func(job.Progress) error) (job.Progress, error) {
	var m measured
	err := w.users.ScanUserKeys(ctx, app.ID, s.Next, s.To, func(user string) error {
		m.Users, m.Bytes = m.Users+1, m.Bytes+int64(len(user))
		return nil
	})
	return job.Progress{Next: s.To, Done: true, Counts: job.Count(m)}, err
}

func newMeasure(runner func(job.Collection) job.Runner) []job.Kind {
	r := runner(measures)
	r.Name, r.Work = "measure", measure{users: r.Users}
	return []job.Kind{job.New(r)}
}

// What runs, counts, resumes and deletes jobs knows a kind by the list of kinds alone.
func TestOneMoreKind(t *testing.T) {
	s := start(t, stack.Options{ConfigTTL: time.Millisecond, LateWrites: time.Millisecond, MoreJobs: newMeasure,
		Recompute: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3}})
	ctx, r := t.Context(), s.Backends.More[0].Core()
	for _, user := range []string{"a", "bb", "ccc", "dddd", "eeeee"} {
		if _, err := s.Backends.Store.Users.TakeTicket(ctx, "demo", user); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(id string) job.Job { return job.Job{App: "demo", ID: id, Params: measureParams{"curiosity"}} }
	find := func(id string) job.Job {
		t.Helper()
		j, err := r.Find(ctx, "demo", id)
		must.Succeed(t, err)
		return j
	}

	if _, err := r.Start(ctx, begin("measure-1"), 0); err != nil {
		t.Fatal(err)
	}
	waitForJobs(t, s, r.Jobs)
	done := find("measure-1")
	want := job.Totals{Shards: 3, Done: 3, PlannedUsers: 5, Counts: job.Count(measured{Users: 5, Bytes: 15})}
	if diff := cmp.Diff(want, done.Totals); diff != "" || done.State != job.Done || done.Params != (measureParams{"curiosity"}) {
		t.Errorf("ended %s %+v, totals (-want +got):\n%s", done.State, done.Params, diff)
	}

	// The process dies between the two steps of a start.
	lost, err := r.Create(ctx, begin("measure-2"), 0)
	must.Succeed(t, err)
	later := lost
	later.QueuedAt = s.Backends.Now().Add(time.Microsecond)
	if n, err := s.Backends.Before(ctx, later); n != 1 || err != nil {
		t.Errorf("%d jobs before a later one, error %v; want the lost one", n, err)
	}
	work(t, s, "/nightly", `{"spread":"0s"}`)
	waitForJobs(t, s, r.Jobs)
	if j := find("measure-2"); j.State != job.Done {
		t.Errorf("the lost job is %s, want it resumed and done", j.State)
	}

	if _, err := r.Start(ctx, begin("measure-3"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if j, err := r.Cancel(ctx, "demo", "measure-3"); j.State != job.Cancelled || err != nil {
		t.Errorf("cancelled: %s, error %v", j.State, err)
	}
	if all, err := r.List(ctx, "demo", 10); len(all) != 3 || err != nil {
		t.Errorf("listed %+v, error %v; want three jobs", all, err)
	}

	if _, err := s.Backends.Deletions.Delete(ctx, "demo", false); err != nil {
		t.Fatal(err)
	}
	deleted(t, s, "demo")
	if _, err := r.Find(ctx, "demo", "measure-1"); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("a job of the deleted app: %v, want %v", err, job.ErrNotFound)
	}
}
