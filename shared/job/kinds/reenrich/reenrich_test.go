package reenrich_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/documents"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
	"github.com/affinityengine/affinity/shared/intake/enrich"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/queue"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const app = "shop"

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// harness is a log, a catalog that knows the objects of a test, a clock that
// the test sets, and a bus and a queue that record what they get.
type harness struct {
	t      *testing.T
	clock  time.Time
	store  *store.Store
	apps   *config.Store
	known  bus.Objects
	bands  bus.Bands
	sent   map[string]int // how often each event was published, by user and id
	most   int            // events in one message
	broken int            // publishes until one fails; 0: none fails
	tasks  []queue.Task
	runner *reenrich.Runner
	work   reenrich.Work
}

func newHarness(t *testing.T) *harness {
	s, _ := storetest.NewDeployed(t)
	w := &harness{t: t, clock: noon, store: s, apps: config.NewMemory(), known: bus.Objects{}, sent: map[string]int{}}
	must.Succeed(t, w.apps.CreateApp(t.Context(), config.App{ID: app, RetentionDays: 30}))
	w.work = reenrich.Work{Store: w.store, Catalog: w, Bus: w, Config: w.apps, Bands: w.apps, Queue: w, Now: w.now, Log: slog.New(slog.DiscardHandler)}
	w.runner = reenrich.New(job.Runner{
		Settings: job.Settings{ShardUsers: 2, Budget: time.Minute, Attempts: 3}, Jobs: job.In(documents.NewMemory(), reenrich.Collection), Config: w.apps, Queue: w, Users: w.store.Users,
		Now: w.now, Log: slog.New(slog.DiscardHandler), CheckpointEvery: -1,
	}, w.work)
	return w
}

func (w *harness) now() time.Time { return w.clock }

func (w *harness) Create(_ context.Context, t queue.Task) error {
	if !slices.ContainsFunc(w.tasks, func(other queue.Task) bool { return other.Name == t.Name }) {
		w.tasks = append(w.tasks, t)
	}
	return nil
}

func (w *harness) ResolveFirst(_ context.Context, _ string, events []event.Event) (bus.Resolution, int, error) {
	found := bus.Objects{}
	for _, e := range events {
		for _, id := range e.ObjectIDs {
			if filters, ok := w.known[e.Index][id]; ok {
				found.Put(e.Index, id, filters)
			}
		}
	}
	return bus.Resolution{Objects: found, Bands: w.bands}, len(events), nil
}

var errBroken = errors.New("the bus is broken")

func (w *harness) Publish(_ context.Context, m bus.Message) error {
	if w.broken--; w.broken == 0 {
		return errBroken
	}
	events, err := m.Logged()
	must.Succeed(w.t, err)
	for _, l := range events {
		w.sent[l.User+" "+l.ID]++
	}
	w.most = max(w.most, len(events))
	return nil
}

// log writes n events of a user, so many days old, each of an object of its
// own, with the filters that the catalog has then.
func (w *harness) log(user string, n, days int) {
	w.t.Helper()
	var entries []store.LogEvent
	for i := range n {
		m := bus.Message{App: app, ReceivedAt: noon.UnixMilli(), Resolved: true, Objects: w.known, Bands: w.bands, Body: fmt.Appendf(nil,
			`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":%q,"objectIDs":["%d"],"timestamp":%d}]}`,
			user, i, noon.AddDate(0, 0, -days).UnixMilli()+int64(i))}
		events, err := m.Events()
		must.Succeed(w.t, err)
		entries = append(entries, enrich.LogEvents(events, m.Resolution(), m.ReceivedAt)...)
	}
	must.Succeed(w.t, w.store.Events.Log(app, schema.Default()).Append(w.t.Context(), entries))
	if _, err := w.store.Users.TakeTicket(w.t.Context(), app, user); err != nil {
		w.t.Fatal(err)
	}
}

// know adds the objects 0 to n-1 to the catalog.
func (w *harness) know(n int) {
	for i := range n {
		w.known.Put("i", fmt.Sprint(i), []bus.Filter{{"color", "Red"}})
	}
}

// process calls Process until the shard is done, as its tasks do.
func (w *harness) process(j job.Job, until time.Time) job.Shard {
	w.t.Helper()
	a, err := w.apps.App(w.t.Context(), app)
	must.Succeed(w.t, err)
	shard := job.Shard{PlannedUsers: 4}
	for calls := 0; ; calls++ {
		at := shard
		p, err := w.work.Process(w.t.Context(), j, a, shard, until, func(p job.Progress) error {
			if p.Next < at.Next {
				w.t.Errorf("went back from %q to %q", at.Next, p.Next)
			}
			at = add(shard, p)
			return nil
		})
		if err != nil {
			if !errors.Is(err, errBroken) || calls > 1000 {
				w.t.Fatal(err)
			}
			shard = at // the last checkpoint
			continue
		}
		if shard = add(shard, p); p.Done {
			return shard
		}
	}
}

func add(s job.Shard, p job.Progress) job.Shard {
	s.Next, s.Counts = p.Next, s.Counts.Plus(p.Counts)
	return s
}

// One task reads the whole log, or tasks stop after each step, or any publish
// fails: every event is published, and each counts once.
func TestProcessContinuesWhereItStopped(t *testing.T) {
	w := newHarness(t)
	w.log("a", 1300, 3)
	w.log("b", 40, 3)
	w.log("c", 700, 3)
	w.log("c", 5, 31) // outside the retention
	w.know(600)
	j := job.Job{App: app, ID: "reenrich-1", Kind: reenrich.Publishing, Params: reenrich.Params{LogWindow: job.LogWindow{Since: noon.AddDate(0, 0, -30)}}}
	want := reenrich.Counts{Users: 4, Known: 3, Events: 2040, Resolved: 1240, StillUnknown: 800}
	check := func(t *testing.T, s job.Shard) {
		t.Helper()
		if diff := cmp.Diff(want, job.CountsOf[reenrich.Counts](s.Counts)); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
	}
	for name, until := range map[string]time.Time{"at once": noon.Add(time.Hour), "step by step": noon} {
		t.Run(name, func(t *testing.T) {
			w.sent, w.most = map[string]int{}, 0
			check(t, w.process(j, until))
			for id, n := range w.sent {
				if n != 1 {
					t.Errorf("%s was published %d times", id, n)
				}
			}
			if len(w.sent) != 1240 || w.most > 500 {
				t.Errorf("%d events were published, at most %d in a message; want 1240, and 500", len(w.sent), w.most)
			}
		})
	}
	for broken := 1; broken < 6; broken++ {
		w.sent, w.broken = map[string]int{}, broken
		check(t, w.process(j, noon))
		if len(w.sent) != 1240 {
			t.Errorf("publish %d failed: %d events were published, want 1240", broken, len(w.sent))
		}
	}
	w.sent = map[string]int{}
	j.Kind = reenrich.DryRun
	check(t, w.process(j, noon))
	if len(w.sent) != 0 {
		t.Errorf("a dry run published %d events", len(w.sent))
	}
}

// A task that reads a log during a change of schema fails, so that the queue
// retries it.
func TestProcessOfMigratingLog(t *testing.T) {
	w := newHarness(t)
	w.log("a", 3, 3)
	a, err := w.apps.App(t.Context(), app)
	must.Succeed(t, err)
	if _, err := w.apps.UpdateLog(t.Context(), app, func(to *config.App) error {
		to.Log = schema.Of(schema.Narrow)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p, err := w.work.Process(t.Context(), job.Job{App: app}, a, job.Shard{}, noon, func(job.Progress) error { return nil })
	if !errors.Is(err, profile.ErrSchemaChanged) || p.Done {
		t.Errorf("%+v, %v; want profile.ErrSchemaChanged", p, err)
	}
}

// drain runs the tasks in the queue.
func (w *harness) drain() {
	w.t.Helper()
	for n := 0; n < len(w.tasks); n++ {
		w.run(w.tasks[n])
	}
}

// run runs a task of a job.
func (w *harness) run(k queue.Task) {
	w.t.Helper()
	var err error
	if k.Path == w.runner.Plans().Path {
		var p job.PlanTask
		if p, err = w.runner.Plans().Decode(k.Body); err == nil {
			_, err = w.runner.Plan(w.t.Context(), p, 0)
		}
	} else {
		var s job.ShardTask
		if s, err = w.runner.Shards().Decode(k.Body); err == nil {
			_, err = w.runner.Shard(w.t.Context(), s, 0)
		}
	}
	must.Succeed(w.t, err)
}

func TestOneJobAtATime(t *testing.T) {
	w := newHarness(t)
	for _, user := range []string{"a", "b", "c", "d", "e"} {
		w.log(user, 3, 3)
	}
	w.know(1)
	first, err := w.runner.StartOne(t.Context(), app, true)
	if err != nil || first.Kind != reenrich.DryRun || !job.ParamsOf[reenrich.Params](first).Since.Equal(noon.AddDate(0, 0, -30).Add(time.Millisecond)) {
		t.Fatalf("%+v, %v", first, err)
	}
	if second, err := w.runner.StartOne(t.Context(), app, false); err != nil || second.ID != first.ID || len(w.tasks) != 1 {
		t.Errorf("a second start: %+v and %d tasks, error %v; want the first", second, len(w.tasks), err)
	}
	w.tasks = nil // as if the queue had lost it
	if _, err := w.runner.StartOne(t.Context(), app, false); err != nil || len(w.tasks) != 1 {
		t.Errorf("%d tasks, error %v; want the lost task enqueued again", len(w.tasks), err)
	}
	w.drain()
	done, err := w.runner.Find(t.Context(), app, first.ID)
	if err != nil || done.State != job.Done || done.Totals.Counts["users"] != 5 || done.Totals.Counts["resolved"] != 5 || done.Totals.Counts["stillUnknown"] != 10 || len(w.sent) != 0 {
		t.Fatalf("%+v and %d published, error %v", done, len(w.sent), err)
	}
	third, err := w.runner.StartOne(t.Context(), app, false)
	if err != nil || third.ID == first.ID || third.Kind != reenrich.Publishing {
		t.Fatalf("%+v, %v; want another job", third, err)
	}
	w.drain()
	if len(w.sent) != 5 {
		t.Errorf("%d events were published, want 5", len(w.sent))
	}
}

// blind is a store that shows no unfinished job at the first look.
type blind struct {
	job.Jobs
	looked bool
}

func (b *blind) Unfinished(ctx context.Context, app string) ([]job.Job, error) {
	if !b.looked {
		b.looked = true
		return nil, nil
	}
	return b.Jobs.Unfinished(ctx, app)
}

// Two starts at the same time do not see each other's job, and their clocks
// differ. One job remains.
func TestConcurrentStarts(t *testing.T) {
	for _, later := range []time.Duration{time.Second, 0, -time.Second} {
		t.Run(later.String(), func(t *testing.T) { twoStartsAtOnce(t, later) })
	}
}

func twoStartsAtOnce(t *testing.T, later time.Duration) {
	w := newHarness(t)
	first, err := w.runner.StartOne(t.Context(), app, false)
	must.Succeed(t, err)
	w.clock = w.clock.Add(later)
	inner := w.runner.Jobs
	w.runner.Jobs = &blind{Jobs: inner}
	second, err := w.runner.StartOne(t.Context(), app, false)
	must.Succeed(t, err)
	jobs, err := inner.List(t.Context(), app, 10)
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	unfinished, err := inner.Unfinished(t.Context(), app)
	if err != nil || len(unfinished) != 1 || unfinished[0].ID != second.ID {
		t.Errorf("%+v are under way, error %v; want one, which was answered: %s", unfinished, err, second.ID)
	}
	for _, j := range jobs {
		if j.ID != second.ID && (j.State != job.Superseded || !strings.Contains(j.Error, second.ID)) {
			t.Errorf("the other is %+v, want it superseded by %s", j, second.ID)
		}
	}
	// The first start, repeated, returns the same job.
	if again, err := w.runner.StartOne(t.Context(), app, false); err != nil || again.ID != second.ID {
		t.Errorf("%+v, %v; want %s, the first was %s", again, err, second.ID, first.ID)
	}
}

func TestStartOfUnknownApp(t *testing.T) {
	if j, err := newHarness(t).runner.StartOne(t.Context(), "nobody", false); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("%+v, %v; want config.ErrNotFound", j, err)
	}
}
