package migration_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/migration"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// harness is the harness of package jobtest with a log that can be migrated:
// the real store on an in-process Bigtable. The app's users are those of the
// store. Every call to the configuration, the jobs, the queue and Bigtable
// passes its gate.
type harness struct {
	*jobtest.Harness
	t        *testing.T
	store    *store.Store
	client   *bigtable.Client
	migrator *migration.Migrator
	engine   *profile.Engine
	// events are the events that exist, by their places.
	events map[string]store.LogEvent
	clock  *clock
	gate   *gate
}

// usual gives every app here several shards, and their tasks enough time.
var usual = job.Settings{ShardUsers: 3, Budget: time.Minute, Attempts: 3}

// newHarness makes a harness whose log is in one schema.
func newHarness(t *testing.T, lies schema.Name, cfg job.Settings) *harness {
	t.Helper()
	g := &gate{}
	s, client := storetest.NewWithClient(t, g.dial()...)
	return newHarnessOn(t, s, client, g, lies, cfg)
}

func newHarnessOn(t *testing.T, s *store.Store, client *bigtable.Client, g *gate, lies schema.Name, cfg job.Settings) *harness {
	t.Helper()
	inner := jobtest.New(t, migration.Collection, 0, cfg)
	w := &harness{Harness: inner, t: t, store: s, client: client, events: map[string]store.LogEvent{}, clock: &clock{now: jobtest.Noon}, gate: g}
	g.set(w)
	parts := inner.Parts(cfg)
	parts.Users, parts.Now = s.Users, w.clock.read
	w.migrator = migration.New(parts, gatedConfig{w.Config, w}, s)
	w.migrator.SetPauses(0, 0)
	inner.Runner = w.migrator.Runner
	w.engine = profile.New(s, w.Config, config.NewCached(w.Config, 0), w.clock.read, slog.New(slog.DiscardHandler))
	w.setLog(func(l *schema.Layout) { *l = schema.Of(lies) })
	return w
}

// clear removes the rows of the app that other harnesses on the same store
// left.
func (w *harness) clear(t *testing.T) {
	t.Helper()
	for _, name := range []string{wideTable, narrowTable, store.TableUsers, store.TableHistories} {
		table := w.client.Open(name)
		var keys []string
		var gone []*bigtable.Mutation
		err := table.ReadRows(t.Context(), bigtable.PrefixRange(jobtest.App+","), func(r bigtable.Row) bool {
			m := bigtable.NewMutation()
			m.DeleteRow()
			keys, gone = append(keys, r.Key()), append(gone, m)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if errs, err := table.ApplyBulk(t.Context(), keys, gone); err != nil || errs != nil {
			t.Fatal(err, errs)
		}
	}
}

// clock is the engine's clock. Reading it may take some time.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	look time.Duration
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.look)
	return c.now
}

// hurried makes every reading of the clock take some time.
func (w *harness) hurried(look time.Duration) {
	w.clock.mu.Lock()
	defer w.clock.mu.Unlock()
	w.clock.look = look
}

func (w *harness) app() config.App {
	w.t.Helper()
	app, err := w.Config.App(w.t.Context(), jobtest.App)
	if err != nil {
		w.t.Fatal(err)
	}
	return app
}

// setLog changes the layout of the log without a migration.
func (w *harness) setLog(change func(*schema.Layout)) {
	w.t.Helper()
	if _, err := w.Config.UpdateLog(w.t.Context(), jobtest.App, func(a *config.App) error { change(&a.Log); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// apply applies events.
func (w *harness) apply(events ...store.LogEvent) {
	w.t.Helper()
	if _, err := w.engine.Import(w.t.Context(), w.app(), events); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		w.events[place(e)] = e
	}
}

// put writes events to one schema only, which the engine never does.
func (w *harness) put(n schema.Name, events ...store.LogEvent) {
	w.t.Helper()
	if err := w.store.Events.Log(jobtest.App, schema.Of(n)).Append(w.t.Context(), events); err != nil {
		w.t.Fatal(err)
	}
}

// take removes the row of an event from one schema only.
func (w *harness) take(n schema.Name, e store.LogEvent) {
	w.t.Helper()
	if err := w.store.Events.Log(jobtest.App, schema.Of(n)).DeleteEntries(w.t.Context(), n, []string{key(e)}); err != nil {
		w.t.Fatal(err)
	}
}

// forget deletes a user and purges their events.
func (w *harness) forget(user string) {
	w.t.Helper()
	until, err := w.engine.Delete(w.t.Context(), jobtest.App, user)
	if err == nil {
		_, err = w.engine.Purge(w.t.Context(), jobtest.App, user, until)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for k, e := range w.events {
		if e.User == user && e.Time <= until.UnixMilli() {
			delete(w.events, k)
		}
	}
}

const keyTime = "2006-01-02T15:04:05.000Z"

// key returns the key of an event's row in either schema.
func key(e store.LogEvent) string { return jobtest.App + "," + place(e) }

func place(e store.LogEvent) string {
	return e.User + "," + time.UnixMilli(e.Time).UTC().Format(keyTime) + "," + e.ID
}

// steps are all steps of a migration to a schema, in order. A drop removes the
// schema that the last migration left.
var steps = []string{"start", "backfill", "verify", "cutover", "drop", "rollback"}

// step takes a step.
func (w *harness) step(ctx context.Context, name string, to schema.Name) (migration.Status, error) {
	switch name {
	case "start":
		return w.migrator.Start(ctx, jobtest.App, to)
	case "backfill":
		return w.migrator.Backfill(ctx, jobtest.App, 0)
	case "verify":
		return w.migrator.Verify(ctx, jobtest.App)
	case "cutover":
		return w.migrator.Cutover(ctx, jobtest.App)
	case "drop":
		return w.migrator.Drop(ctx, jobtest.App, to.Other())
	}
	return w.migrator.Rollback(ctx, jobtest.App)
}

// does takes steps of a migration to a schema, and runs their tasks.
func (w *harness) does(to schema.Name, names ...string) migration.Status {
	w.t.Helper()
	for _, name := range names {
		if _, err := w.step(w.t.Context(), name, to); err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		w.Drain()
	}
	return w.status()
}

// moves takes all steps, and checks after each that its job is done.
func (w *harness) moves(to schema.Name) {
	w.t.Helper()
	for _, name := range steps[:5] {
		w.wantDone(w.does(to, name))
	}
}

func (w *harness) wantDone(s migration.Status) {
	w.t.Helper()
	if s.Job != nil && (s.Job.State != job.Done || s.Job.Totals.Counts["faulty"] > 0) {
		w.t.Fatalf("%s is %s, error %q, faults %q", s.Job.ID, s.Job.State, s.Job.Error, s.Faults)
	}
}

func (w *harness) status() migration.Status {
	w.t.Helper()
	s, err := w.migrator.Status(w.t.Context(), jobtest.App)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// rowsIn returns the rows of one schema, by their places, as texts.
func (w *harness) rowsIn(app string, n schema.Name) map[string]string {
	w.t.Helper()
	rows := map[string]string{}
	err := w.store.Events.Log(app, schema.Of(n)).Scan(w.t.Context(), n, store.Range{}, 0, func(e store.Entry) error {
		ev, err := e.Event()
		if err != nil {
			return err
		}
		at := store.LogEvent{User: e.User, Time: e.Time, ID: e.ID, Type: ev.Type, Name: ev.Name, Counts: ev.Counts, Original: e.Original,
			Index: ev.Index, ObjectIDs: ev.ObjectIDs}
		rows[place(at)] = rowText(at)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

func rowText(e store.LogEvent) string {
	counts := slices.Clone(e.Counts)
	slices.SortFunc(counts, func(a, b affinity.Count) int {
		return cmp.Or(cmp.Compare(a.Facet, b.Facet), cmp.Compare(a.Value, b.Value), cmp.Compare(a.N, b.N))
	})
	return fmt.Sprintf("%s %q %+v %q %q %s", e.Type, e.Name, counts, e.Index, e.ObjectIDs, e.Original)
}

// wantRows checks that one schema has exactly the events that exist, from a
// time on.
func (w *harness) wantRows(n schema.Name, since int64) {
	w.t.Helper()
	want := map[string]string{}
	for k, e := range w.events {
		if e.Time >= since {
			want[k] = rowText(e)
		}
	}
	got, faults := w.rowsIn(jobtest.App, n), []string{}
	for k, text := range want {
		if got[k] != text {
			faults = append(faults, fmt.Sprintf("%s: got %q, want %q", k, got[k], text))
		}
		delete(got, k)
	}
	for k := range got {
		faults = append(faults, k+" should not be there")
	}
	if len(faults) > 0 {
		w.t.Fatalf("the rows in %s are not the events that exist, %d faults:\n%s",
			n, len(faults), strings.Join(faults[:min(len(faults), 5)], "\n"))
	}
}

// wantBoth checks that both schemas have the same rows.
func (w *harness) wantBoth() {
	w.t.Helper()
	w.wantRows(schema.Narrow, 0)
	w.wantRows(schema.Wide, 0)
}

func (w *harness) wantEmpty(n schema.Name) {
	w.t.Helper()
	if rows := w.rowsIn(jobtest.App, n); len(rows) > 0 {
		w.t.Errorf("%d rows are left in %s: %.300s", len(rows), n, fmt.Sprint(rows))
	}
}
