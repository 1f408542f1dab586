package daterows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/daterows"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	app   = jobtest.App
	posts = "posts, red"
	dated = 9 // objects with a date, of eleven
)

// harness has a catalog that was there before the feed, and rubbish among its date
// rows. Requests to the store pass the gate of the harness of jobs.
type harness struct {
	*jobtest.Harness
	t      *testing.T
	store  *store.Store
	client *bigtable.Client
	runner *daterows.Runner
}

func newHarness(t *testing.T) *harness {
	h := &harness{t: t, Harness: jobtest.New(t, daterows.Collection, 3, job.Settings{ShardUsers: 3, Budget: time.Second, Attempts: 100})}
	h.store, h.client = storetest.NewWithClient(t, h.Dial()...)
	h.runner = daterows.New(h.Parts(job.Settings{ShardUsers: 3, Budget: time.Second, Attempts: 100}), h.store, h.Config)
	h.runner.SetPart(4)
	h.Runner = h.runner.Runner
	for i := range dated + 2 {
		h.put(objectID(i), h.date(i))
	}
	h.put("gone", h.date(1), "at")
	h.put("moved", h.date(2), "at")
	h.put("moved", h.date(4))
	must.Succeed(t, h.store.Catalog.DeleteObjects(t.Context(), app, posts, []string{"gone"}))
	must.Succeed(t, h.store.Catalog.DeleteObjects(t.Context(), app, posts, []string{"moved"}))
	h.feed("news", posts, "at")
	return h
}

func objectID(i int) string { return fmt.Sprintf("post,%02d", i) }

func (h *harness) date(i int) string {
	if i >= dated {
		return "some day"
	}
	return jobtest.Noon.AddDate(0, 0, -i).Format(time.RFC3339)
}

func (h *harness) put(id, at string, dates ...string) {
	h.t.Helper()
	o := store.Object{ID: id, Record: []byte(`{"objectID":"x","at":"` + at + `","color":"red"}`),
		Filters: store.ObjectFilters{Filters: []event.Filter{{Facet: "color", Value: "red"}}}}
	must.Succeed(h.t, h.store.Catalog.PutObjects(h.t.Context(), app, posts, []store.Object{o}, dates...))
}

func (h *harness) feed(name, index, date string) {
	h.t.Helper()
	if _, _, err := h.Config.SetFeed(h.t.Context(), app, config.Feed{Name: name, Index: index, Date: date}, h.Now); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) start(ctx context.Context) job.Job {
	h.t.Helper()
	for range 100 {
		if j, err := h.runner.StartBackfill(ctx, app, posts, "at"); err == nil {
			return j
		} else if !errors.Is(err, jobtest.ErrFault) {
			h.t.Fatal(err)
		}
		ctx = jobtest.Process(h.t.Context())
	}
	h.t.Fatal("no start")
	return job.Job{}
}

// wantRows checks that the date rows are those of the objects, and nothing else.
func (h *harness) wantRows() {
	h.t.Helper()
	var want, got []string
	for i := range dated {
		want = append(want, objectID(i))
	}
	list, _, err := h.store.Catalog.ListDated(h.t.Context(), app, store.DatedQuery{Index: posts, Attribute: "at", Newest: h.Now.UnixMilli(), Oldest: 0})
	for _, o := range list {
		got = append(got, o.ID)
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		h.t.Errorf("listed: error %v (-want +got):\n%s", err, diff)
	}
	if n := h.rows(); n != dated {
		h.t.Errorf("%d date rows, want %d", n, dated)
	}
}

func (h *harness) rows() (n int) {
	h.t.Helper()
	err := h.client.Open(store.TableDated).ReadRows(h.t.Context(), bigtable.InfiniteRange(""), func(bigtable.Row) bool { n++; return true })
	must.Succeed(h.t, err)
	return n
}

func (h *harness) wantCounts(j job.Job, want daterows.Counts) {
	h.t.Helper()
	if diff := cmp.Diff(want, job.CountsOf[daterows.Counts](h.Find(j.ID).Totals.Counts)); diff != "" {
		h.t.Errorf("counts of %s (-want +got):\n%s", j.ID, diff)
	}
}

func TestBackfill(t *testing.T) {
	h := newHarness(t)
	j := h.start(t.Context())
	if again := h.start(t.Context()); again.ID != j.ID {
		t.Errorf("a second start makes job %s, the first is %s", again.ID, j.ID)
	}
	h.Drain()
	h.WantState(j.ID, job.Done, "")
	h.wantRows()
	h.wantCounts(j, daterows.Counts{Objects: dated + 2, Inserted: dated, Undated: 2, Rows: dated + 2, Deleted: 2})
	if again := h.start(t.Context()); again.ID != j.ID || again.State != job.Done {
		t.Errorf("a start after the end makes job %s, which is %s", again.ID, again.State)
	}
	if n, known, err := h.runner.Undated(t.Context(), h.Find(j.ID), "at"); n != 2 || !known || err != nil {
		t.Errorf("%d objects have no date (known: %v, error %v), want 2", n, known, err)
	}

	// Settings change what filters the objects have: the next job renews the rows.
	if _, err := h.Config.SetIndexSettings(t.Context(), app, posts, catalog.Change{AttributesForFaceting: []string{"color"}}); err != nil {
		t.Fatal(err)
	}
	h.Now = h.Now.Add(24 * time.Hour)
	for range 2 {
		must.Succeed(t, h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}))
	}
	h.Drain()
	latest, err := h.runner.List(t.Context(), app, 9)
	if err != nil || len(latest) != 2 || latest[0].Kind != daterows.Nightly {
		t.Fatalf("jobs %+v, error %v; want one for the night", latest, err)
	}
	h.WantState(latest[0].ID, job.Done, "")
	h.wantCounts(latest[0], daterows.Counts{Objects: dated + 2, Inserted: dated, Undated: 2, Rows: dated})
	h.wantRows()
}

// With a fault, a lost answer or a death at each call in turn, the rows are right in
// the end.
func TestFaultAtEveryCall(t *testing.T) {
	for name, cause := range map[string]func(context.Context) jobtest.Fault{
		"fault": func(context.Context) jobtest.Fault { return jobtest.FailBefore },
		"lost":  func(context.Context) jobtest.Fault { return jobtest.FailAfter },
		"death": jobtest.Dies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, stride := 1, 5
			if race.On {
				stride = 17
			}
			for at := 0; at < calls; at += stride {
				h := newHarness(t)
				calls = 0
				h.Gate = func(ctx context.Context, _ string) jobtest.Fault {
					h.Now = h.Now.Add(300 * time.Millisecond) // so that a task's time is over before its range
					if calls++; calls-1 == at {
						return cause(ctx)
					}
					return jobtest.Alive(ctx)
				}
				j := h.start(jobtest.Process(t.Context()))
				h.Drain()
				h.Gate = nil
				h.WantState(j.ID, job.Done, "")
				h.wantRows()
				if t.Failed() {
					t.Fatalf("with call %d", at)
				}
			}
			if calls < 40 {
				t.Errorf("only %d calls pass the gate", calls)
			}
		})
	}
}

// A cancelled job changes nothing more, a new attribute gets a job of its own, and a
// feed that is deleted ends the job that it needed.
func TestEndsOfJobs(t *testing.T) {
	h := newHarness(t)
	j := h.start(t.Context())
	if _, err := h.runner.Cancel(t.Context(), app, j.ID); err != nil {
		t.Fatal(err)
	}
	h.Drain()
	h.WantState(j.ID, job.Cancelled, "")
	if n := h.rows(); n != 2 {
		t.Errorf("%d date rows after the cancellation, want the 2 of before", n)
	}
	h.Now = h.Now.Add(time.Minute)
	again := h.start(t.Context())
	if again.ID == j.ID || again.State.Ended() {
		t.Fatalf("%s follows, which is %s", again.ID, again.State)
	}
	h.Now = h.Now.Add(time.Minute)
	h.feed("other", posts, "updated")
	other, err := h.runner.StartBackfill(t.Context(), app, posts, "updated")
	if err != nil || other.ID == again.ID {
		t.Fatalf("job %s, error %v; want one of its own", other.ID, err)
	}
	h.WantState(again.ID, job.Superseded, other.ID)
	for _, name := range []string{"news", "other"} {
		must.Succeed(t, h.Config.DeleteFeed(t.Context(), app, name, h.Now))
	}
	h.Drain()
	h.WantState(other.ID, job.Superseded, "no feed orders the objects of index posts, red any more")

	// Nothing names a date any more: the night deletes all date rows.
	must.Succeed(t, h.runner.Nightly(t.Context(), app, job.Night{Date: h.Now.Format(time.DateOnly)}))
	h.Drain()
	if n := h.rows(); n != 0 {
		t.Errorf("%d date rows that nothing names", n)
	}
	if _, err := h.runner.StartBackfill(t.Context(), "nobody", posts, "at"); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("job of an unknown app: error %v", err)
	}
}

// An object that cannot be read stops nothing: it is counted, and its row named.
func TestDamagedObject(t *testing.T) {
	h := newHarness(t)
	if _, err := h.Config.SetIndexSettings(t.Context(), app, posts, catalog.Change{AttributesForFaceting: []string{"color"}}); err != nil {
		t.Fatal(err)
	}
	m := bigtable.NewMutation()
	m.Set("o", "record", bigtable.Now(), []byte(`{"at":`))
	must.Succeed(t, h.client.Open(store.TableObjects).Apply(t.Context(), app+",posts%2C+red,damaged", m))
	j := h.start(t.Context())
	h.Drain()
	h.WantState(j.ID, job.Done, "")
	h.wantRows()
	faults, err := h.runner.Jobs.Faults(t.Context(), app, j.ID, 9)
	if n := job.CountsOf[daterows.Counts](h.Find(j.ID).Totals.Counts).Faulty; n != 1 || err != nil || len(faults) != 1 || !strings.Contains(faults[0], "damaged") {
		t.Errorf("%d faulty objects, %q, error %v", n, faults, err)
	}
}

// A backfill waits until every function knows the attribute.
func TestBackfillWaits(t *testing.T) {
	h := newHarness(t)
	h.Clock = time.Now
	h.start(t.Context())
	if wait := h.Tasks[0].Delay; wait <= 0 || wait > 10*time.Second {
		t.Errorf("the job begins after %v, want within the 10 seconds of the propagation", wait)
	}
}
