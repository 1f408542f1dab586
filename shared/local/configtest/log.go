package configtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/score/schema"
)

// both is the layout in the middle of a migration.
var both = schema.Layout{Write: []schema.Name{schema.Wide, schema.Narrow}, Read: schema.Wide, Encoding: schema.JSON}

// badLayouts are layouts that no app may have.
var badLayouts = []schema.Layout{
	{},
	{Write: []schema.Name{schema.Wide}, Read: schema.Wide},
	{Write: []schema.Name{schema.Wide}, Read: schema.Narrow, Encoding: schema.JSON},
	{Read: schema.Wide, Encoding: schema.JSON},
	{Write: []schema.Name{schema.Wide, schema.Wide}, Read: schema.Wide, Encoding: schema.JSON},
	{Write: []schema.Name{schema.Wide, "tall"}, Read: schema.Wide, Encoding: schema.JSON},
	{Write: []schema.Name{schema.Wide}, Read: schema.Wide, Encoding: "xml"},
}

// readApp returns an app that exists.
func readApp(t *testing.T, s store, id string) config.App {
	t.Helper()
	app, err := s.App(t.Context(), id)
	if err != nil {
		t.Fatalf("read app %q: %v", id, err)
	}
	return app
}

// updateLog changes the log of the app "shop", and checks that the returned app is
// the stored one.
func updateLog(t *testing.T, s store, change func(*config.App)) config.App {
	t.Helper()
	app, err := s.UpdateLog(t.Context(), "shop", func(a *config.App) error {
		change(a)
		return nil
	})
	if err != nil {
		t.Fatalf("change the log: %v", err)
	}
	got, err := s.App(t.Context(), "shop")
	read(t, "app after a change of its log", got, err, app)
	return app
}

// A new app has the layout that it names, wide by default, and no migration.
func testLogOfNewApps(t *testing.T, s store) {
	create(t, s, "silent")
	if got := readApp(t, s, "silent"); !got.Log.Equal(schema.Default()) || got.Migration != (config.Migration{}) {
		t.Errorf("app without a layout: got %+v, migration %+v", got.Log, got.Migration)
	}
	for i, layout := range []schema.Layout{schema.Of(schema.Narrow), both} {
		id := fmt.Sprint("app", i)
		if err := s.CreateApp(t.Context(), config.App{ID: id, Log: layout,
			Migration: config.Migration{ID: "migration-1"}}); err != nil {
			t.Fatal(err)
		}
		if got := readApp(t, s, id); !got.Log.Equal(layout) || got.Migration != (config.Migration{}) {
			t.Errorf("got %+v and migration %+v, want %+v and none", got.Log, got.Migration, layout)
		}
	}
	for _, layout := range badLayouts[1:] { // the first says nothing
		if err := s.CreateApp(t.Context(), config.App{ID: "bad", Log: layout}); err == nil {
			t.Errorf("an app with the log %+v was made", layout)
		}
	}
	_, err := s.App(t.Context(), "bad")
	wantError(t, "an app that was refused", err, config.ErrNotFound)
}

func testUpdateLog(t *testing.T, s store) {
	create(t, s, "shop")
	create(t, s, "other")
	setStrategy(t, s, "shop", scores(1), 1, true)
	started := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("", 3600))
	want := readApp(t, s, "shop")
	want.Log, want.Migration = both, config.Migration{ID: "migration-1", From: schema.Wide, To: schema.Narrow,
		Phase: config.Backfilling,
		Job:   "backfill-2", Backfill: "backfill-1", Rate: 500, StartedAt: started.UTC().Truncate(time.Microsecond)}
	got := updateLog(t, s, func(a *config.App) {
		a.Log, a.Migration = both, want.Migration
		a.Migration.StartedAt = started
	})
	want.ChangedAt = got.ChangedAt // has a test of its own
	read(t, "app", got, nil, want)

	setStrategy(t, s, "shop", scores(2), 2, true)
	if got := readApp(t, s, "shop"); !got.Log.Equal(both) || got.Migration != want.Migration {
		t.Errorf("another strategy left log %+v and migration %+v", got.Log, got.Migration)
	}
	if got := updateLog(t, s, func(a *config.App) { a.Migration = config.Migration{} }); got.Migration != (config.Migration{}) || !got.Log.Equal(both) {
		t.Errorf("without the migration: got log %+v and migration %+v", got.Log, got.Migration)
	}
	if got := readApp(t, s, "other"); !got.Log.Equal(schema.Default()) {
		t.Errorf("another app got %+v", got.Log)
	}
}

// A change that fails or returns an invalid layout leaves the app unchanged.
func testUpdateLogRefused(t *testing.T, s store) {
	create(t, s, "shop")
	updateLog(t, s, func(a *config.App) {
		a.Log, a.Migration = both, config.Migration{ID: "migration-1", Phase: config.Dual}
	})
	want := readApp(t, s, "shop")

	errChange := status.Error(codes.Aborted, "not now") // and no conflict of the store's own
	calls := 0
	_, err := s.UpdateLog(t.Context(), "shop", func(a *config.App) error {
		calls++
		a.Log.Write[0] = schema.Narrow // in place
		a.Log.Read, a.Migration.Phase = schema.Narrow, config.CutOver
		return errChange
	})
	wantError(t, "error of the change", err, errChange)
	if calls != 1 {
		t.Errorf("the change that failed was called %d times", calls)
	}
	got, err := s.App(t.Context(), "shop")
	read(t, "app after the change that failed", got, err, want)
	for _, layout := range badLayouts {
		_, err := s.UpdateLog(t.Context(), "shop", func(a *config.App) error {
			a.Log, a.Migration.Phase = layout, config.CutOver
			return nil
		})
		if err == nil {
			t.Errorf("the log %+v was accepted", layout)
		}
		got, err := s.App(t.Context(), "shop")
		read(t, fmt.Sprintf("app after the log %+v", layout), got, err, want)
	}
}

// A change of other fields is ignored.
func testUpdateLogOnly(t *testing.T, s store) {
	create(t, s, "shop")
	setStrategy(t, s, "shop", scores(1), 1, true)
	want := readApp(t, s, "shop")
	want.Migration = config.Migration{ID: "migration-1", StartedAt: time.Unix(1, 0).UTC()}
	got := updateLog(t, s, func(a *config.App) {
		*a = config.App{ID: "other", RetentionDays: 1, Strategy: scores(2), StrategyVersion: 7, Log: a.Log,
			Migration: want.Migration,
			CreatedAt: time.Unix(1, 0), ChangedAt: time.Unix(1, 0)}
	})
	read(t, "app", got, nil, want)
	_, err := s.App(t.Context(), "other")
	wantError(t, "an app that a change named", err, config.ErrNotFound)
}

// A change of the schemas sets ChangedAt. That of an encoding or a migration does
// not.
func testLogChangedAt(t *testing.T, s store) {
	create(t, s, "shop")
	changed := readApp(t, s, "shop").ChangedAt
	for _, step := range []struct {
		what   string
		change func(*config.App)
		counts bool
	}{
		{"nothing", func(*config.App) {}, false},
		{"encoding", func(a *config.App) { a.Log.Encoding = schema.JSON }, false},
		{"migration", func(a *config.App) { a.Migration = config.Migration{ID: "migration-1", Phase: config.Dual} }, false},
		{"write both", func(a *config.App) { a.Log.Write = []schema.Name{schema.Wide, schema.Narrow} }, true},
		{"in another order", func(a *config.App) { a.Log.Write = []schema.Name{schema.Narrow, schema.Wide} }, false},
		{"read the other", func(a *config.App) { a.Log.Read = schema.Narrow }, true},
		{"phase", func(a *config.App) { a.Migration.Phase = config.Dropping }, false},
		{"write one, with another encoding", func(a *config.App) {
			a.Log = schema.Layout{Write: []schema.Name{schema.Narrow}, Read: schema.Narrow, Encoding: schema.Compact}
		}, true},
	} {
		before := time.Now().Truncate(time.Millisecond)
		app := updateLog(t, s, step.change)
		after := time.Now()
		if within := !app.ChangedAt.Before(before) && !app.ChangedAt.After(after); step.counts && !within {
			t.Errorf("%s: changed at %v, want within %v and %v", step.what, app.ChangedAt, before, after)
		}
		if !step.counts && !app.ChangedAt.Equal(changed) {
			t.Errorf("%s: changed at %v, want %v as before", step.what, app.ChangedAt, changed)
		}
		changed = app.ChangedAt
	}
}

// No concurrent change is lost, even if other fields of the app change too.
func testLogAtOnce(t *testing.T, s store) {
	create(t, s, "shop")
	logsAtOnce(t, "shop", s)
}

// logsAtOnce makes 20 concurrent changes, on the stores in turn, while the strategy
// and the retention change. Each change extends the id of the app's migration.
func logsAtOnce(t *testing.T, app string, stores ...store) {
	const n = 20
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			_, err := stores[i%len(stores)].UpdateLog(t.Context(), app, func(a *config.App) error {
				a.Migration.ID += "x"
				return nil
			})
			if err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		})
	}
	for i, change := range []func() error{
		func() error { _, _, err := stores[0].SetStrategy(t.Context(), app, scores(1)); return err },
		func() error { return stores[0].SetRetention(t.Context(), app, 30) },
	} {
		group.Go(func() {
			if err := change(); err != nil {
				t.Errorf("other change %d: %v", i, err)
			}
		})
	}
	group.Wait()
	got, err := stores[0].UpdateLog(t.Context(), app, func(*config.App) error { return nil })
	if err != nil || len(got.Migration.ID) != n || got.StrategyVersion != 1 || got.RetentionDays != 30 {
		t.Errorf("got %d changes of the log, strategy version %d, retention %d, error %v; want %d, 1 and 30",
			len(got.Migration.ID), got.StrategyVersion, got.RetentionDays, err, n)
	}
}

// testGeneration checks that a layout that returns to an earlier one has a new
// generation, and that a caller cannot set the generation.
func testGeneration(t *testing.T, s store) {
	create(t, s, "shop")
	generation := readApp(t, s, "shop").Log.Generation
	for _, step := range []struct {
		name   string
		change func(*config.App)
		raises int64
	}{
		{"nothing", func(*config.App) {}, 0},
		{"another encoding", func(a *config.App) { a.Log.Encoding = schema.JSON }, 0},
		{"only a migration", func(a *config.App) {
			a.Migration = config.Migration{ID: "migration-1",
				Phase: config.Dual}
		}, 0},
		{"both written", func(a *config.App) { a.Log.Write = schema.Names }, 1},
		{"the same in another order", func(a *config.App) { a.Log.Write = []schema.Name{schema.Wide, schema.Narrow} }, 0},
		{"the other one read", func(a *config.App) { a.Log.Read = schema.Narrow }, 1},
		{"and back", func(a *config.App) { a.Log.Read = schema.Wide }, 1},
		{"one written", func(a *config.App) { a.Log.Write = []schema.Name{schema.Wide} }, 1},
		{"a generation of one's own", func(a *config.App) { a.Log.Generation = 99 }, 0},
	} {
		got := updateLog(t, s, step.change)
		generation += step.raises
		if stored := readApp(t, s, "shop"); got.Log.Generation != generation || stored.Log.Generation != generation {
			t.Errorf("%s: generation %d, stored %d, want %d", step.name, got.Log.Generation, stored.Log.Generation, generation)
		}
	}
}
