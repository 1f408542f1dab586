package migration_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/local/jobtest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// neighbours are apps whose ids begin with that of the migrated app, or the
// other way round.
var neighbours = []string{"shop-2", "shopper", "sho"}

// TestJourney migrates a log and migrates it back: users and events of every
// odd form, in either encoding, from before and during the migration, some of
// them folded into histories.
func TestJourney(t *testing.T) {
	t.Parallel()
	for _, lies := range schema.Names {
		t.Run("from "+string(lies), func(t *testing.T) {
			w, r := newHarness(t, lies, usual), rand.New(rand.NewPCG(1, 2))
			if _, _, err := w.Config.SetStrategy(t.Context(), jobtest.App, scoring); err != nil {
				t.Fatal(err)
			}
			more := func(each int) {
				for i, some := range [][]string{users[:5], users[5:]} {
					w.setLog(func(l *schema.Layout) { l.Encoding = []schema.Encoding{schema.JSON, schema.Compact}[i] })
					var events []store.LogEvent
					for range each {
						for _, user := range some {
							events = append(events, someEvent(t, r, user, 80*24*time.Hour))
						}
					}
					w.apply(events...)
				}
			}
			more(4)
			var many []store.LogEvent
			for range 60 {
				many = append(many, someEvent(t, r, "folded", 80*24*time.Hour))
			}
			w.apply(many...)
			w.folds(t)
			for _, app := range neighbours {
				w.neighbour(t, app)
			}

			for _, to := range []schema.Name{lies.Other(), lies} {
				for _, name := range steps[:5] {
					w.wantDone(w.does(to, name))
					more(1)
					if name != "start" && name != "backfill" {
						w.wantExact(t, name)
					}
				}
				w.wantRows(to, 0)
				w.wantEmpty(to.Other())
				w.folds(t)
			}
			if s := w.status(); s.Active() || s.Log.Read != lies || s.Log.Writes(lies.Other()) {
				t.Errorf("after a migration there and back the log lies as %+v, migration %+v", s.Log, s.Migration)
			}
			for _, app := range neighbours {
				for _, n := range schema.Names {
					if rows := w.rowsIn(app, n); len(rows) != 1 {
						t.Errorf("%s has %d rows in %s, want its one", app, len(rows), n)
					}
				}
			}
		})
	}
}

// neighbour logs an event of another app in each schema.
func (w *harness) neighbour(t *testing.T, app string) {
	t.Helper()
	l := schema.Layout{Write: schema.Names, Read: schema.Wide, Encoding: schema.JSON}
	if err := w.store.Events.Log(app, l).Append(t.Context(), []store.LogEvent{plain(t, "a", 1, "red")}); err != nil {
		t.Fatal(err)
	}
}

// folds folds the events of large logs into blocks.
func (w *harness) folds(t *testing.T) {
	t.Helper()
	if _, err := w.engine.Recompute(t.Context(), w.app(), store.Range{}, profile.RecomputeOptions{Maintain: true}, func(profile.Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	row, err := w.store.Users.ReadUser(t.Context(), jobtest.App, "folded")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := history.ParseManifest(row.Manifest); err != nil || len(m.Blocks) == 0 {
		t.Fatalf("nothing is folded, error %v", err)
	}
}

// wantExact compares every user's profile with the formula over the events that
// exist: as it is read, as it is computed from history and log, and as it is
// stored.
func (w *harness) wantExact(t *testing.T, when string) {
	t.Helper()
	app, byUser := w.app(), map[string][]affinity.Event{}
	for _, e := range w.events {
		byUser[e.User] = append(byUser[e.User], affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts})
	}
	var all []string
	for user, events := range byUser {
		all = append(all, user)
		got, err := w.engine.Read(t.Context(), app, user, 0)
		if err != nil {
			t.Fatal(err)
		}
		row, err := w.store.Users.ReadUser(t.Context(), jobtest.App, user)
		if err != nil {
			t.Fatal(err)
		}
		want := affinity.Reference(events, app.Strategy, affinity.Window{Now: got.Anchor, RetentionDays: app.RetentionDays, DeletedUntil: row.DeletedUntil})
		if err := unlike(got.Profile, want); err != nil {
			t.Fatalf("after %s, profile of %s: %v", when, user, err)
		}
	}
	report, err := audit.New(audit.RowsOf(w.store), w.engine, w.Config).Run(t.Context(), app, all)
	if err != nil || report.Differing > 0 || report.Compared != len(all) {
		t.Fatalf("after %s the audit tells %+v, error %v", when, report, err)
	}
}

// unlike returns how a profile differs from the formula.
func unlike(got, want affinity.Profile) error {
	if got.Known != want.Known || got.LastEventAt != want.LastEventAt || got.Total != want.Total {
		return fmt.Errorf("known %v, last event %d, %d affinities; want %v, %d, %d", got.Known, got.LastEventAt, got.Total, want.Known, want.LastEventAt, want.Total)
	}
	scores := map[string][]float64{}
	for _, a := range want.Affinities {
		scores[a.Facet+"\x00"+a.Value] = a.Scores
	}
	for _, a := range got.Affinities {
		x := scores[a.Facet+"\x00"+a.Value]
		for i, score := range a.Scores {
			if len(x) != len(a.Scores) || math.Abs(score-x[i]) > 1e-9*score {
				return fmt.Errorf("%q:%q scores %v, want %v", a.Facet, a.Value, a.Scores, x)
			}
		}
	}
	return nil
}

// A migration may be abandoned before its cutover, and undone after it. Both
// leave the log as it was, and no rows in the other schema.
func TestAbandonedMigration(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		t.Run(steps[n-1], func(t *testing.T) {
			w := newHarness(t, schema.Narrow, usual)
			w.apply(visits(t, users, 4)...)
			w.neighbour(t, neighbours[0])
			w.does(schema.Wide, steps[:n]...)
			if n == 4 {
				s := w.does(schema.Wide, "rollback")
				if s.Log.Read != schema.Narrow || !s.Log.Writes(schema.Wide) || s.Migration.Phase != config.Backfilling || s.Next[0] != "verify" {
					t.Errorf("after the cutover was undone: %+v, next %v", s.Migration, s.Next)
				}
				w.apply(plain(t, "a", 99, "late"))
				w.wantBoth()
				w.wantDone(w.does(schema.Wide, "verify", "cutover"))
				w.wantExact(t, "second cutover")
				w.does(schema.Wide, "rollback")
			}
			s := w.does(schema.Wide, "rollback")
			w.wantDone(s)
			if !s.Log.Equal(schema.Of(schema.Narrow)) || s.Active() || strings.Join(s.Next, " ") != "start" {
				t.Errorf("the log lies as %+v, moving %v, next %v", s.Log, s.Active(), s.Next)
			}
			w.wantRows(schema.Narrow, 0)
			w.wantEmpty(schema.Wide)
			w.wantExact(t, "rollback")
			if rows := w.rowsIn(neighbours[0], schema.Wide); len(rows) != 1 {
				t.Errorf("the other app has %d rows, want its one", len(rows))
			}
			w.moves(schema.Wide)
			w.wantRows(schema.Wide, 0)
		})
	}
}

// The log of an app without users migrates too.
func TestMigrationOfEmptyLog(t *testing.T) {
	t.Parallel()
	w := newHarness(t, schema.Wide, usual)
	w.moves(schema.Narrow)
	w.apply(plain(t, "a", 1, "red"))
	w.wantRows(schema.Narrow, 0)
	w.wantEmpty(schema.Wide)
	if _, err := w.migrator.Status(t.Context(), "nobody"); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("status of an app that does not exist: %v", err)
	}
}
