package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/intake/warehouse"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// world is what the tables hold, and the law of what they should show.
type world struct {
	rows      []warehouse.Event
	deletions []warehouse.Deletion
}

// covered reports whether a deletion covers an event.
func (w world) covered(e warehouse.Event) bool {
	return slices.ContainsFunc(w.deletions, func(d warehouse.Deletion) bool {
		if d.App != e.App {
			return false
		}
		if d.UserToken == "" {
			return !e.ReceivedAt.After(d.ReceivedUntil)
		}
		t := affinity.Tombstone{DeletedUntil: d.DeletedUntil.UnixMilli(), ReceivedUntil: d.ReceivedUntil.UnixMilli()}
		return d.UserToken == e.UserToken && t.Covers(e.Time.UnixMilli(), e.ReceivedAt.UnixMilli())
	})
}

func nameOf(e warehouse.Event) string {
	return fmt.Sprint(e.App, ",", e.UserToken, ",", e.Time.UnixMilli(), ",", e.ID)
}

// shown returns the events that the view shows, each with what tells its row from others.
func (w world) shown() map[string]string {
	best := map[string]warehouse.Event{}
	for _, e := range w.rows {
		b, ok := best[nameOf(e)]
		if !w.covered(e) && (!ok || e.UnknownObjects < b.UnknownObjects ||
			e.UnknownObjects == b.UnknownObjects && e.WrittenAt.After(b.WrittenAt)) {
			best[nameOf(e)] = e
		}
	}
	shown := map[string]string{}
	for name, e := range best {
		shown[name] = e.Name
	}
	return shown
}

// The view and the deletion say what the law says, whatever the order, also if the deletion runs twice, and for
// events that arrive after the deletion of their user. The columns are those of the messages.
func TestSQLOnDuckDB(t *testing.T) {
	t.Parallel()
	d := startDuckDB(t)
	d.create(t, "event_rows", "event_rows.json")
	d.create(t, "deletions", "deletions.json")
	d.query(t, "CREATE VIEW events AS %s", sql(t, "view.sql"))
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	// The deletion runs at the same time as the law, however long the test takes.
	at := now.Format("TIMESTAMPTZ '2006-01-02 15:04:05-07:00'")
	deletion := strings.ReplaceAll(sql(t, "delete.sql"), "CURRENT_TIMESTAMP", at)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		d.query(t, "DELETE FROM event_rows")
		d.query(t, "DELETE FROM deletions")
		var w world
		for part := range 3 { // the later parts arrive after a run of the deletion
			d.add(t, &w, r, now, part)
			check(t, d, w, seed)
			old := now.Add(-90 * time.Minute)
			w.rows = slices.DeleteFunc(w.rows, func(e warehouse.Event) bool { return w.covered(e) && e.WrittenAt.Before(old) })
			for range 2 {
				d.query(t, "%s", deletion)
				if n := d.number(t, "SELECT count(*) FROM event_rows"); n != len(w.rows) {
					t.Fatalf("seed %d: %d rows are left, want %d", seed, n, len(w.rows))
				}
				check(t, d, w, seed)
			}
		}
		// A day later nothing of a deleted user is there.
		d.query(t, "UPDATE event_rows SET written_at = written_at - INTERVAL 1 DAY")
		d.query(t, "%s", deletion)
		w.rows = slices.DeleteFunc(w.rows, w.covered)
		if n := d.number(t, "SELECT count(*) FROM event_rows"); n != len(w.rows) {
			t.Fatalf("seed %d: %d rows are left in the end, want %d", seed, n, len(w.rows))
		}
		check(t, d, w, seed)
	}
}

// add adds random rows to the world and to the tables.
func (d duckDB) add(t *testing.T, w *world, r *rand.Rand, now time.Time, part int) {
	t.Helper()
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(r.IntN(minutes)) * time.Minute) }
	apps, users := []string{"shop", "Shop", "other"}, []string{"ann", "bob", "Ann", "o'neil_=+/-"}
	var events, deletions strings.Builder
	for i := range 60 {
		e := warehouse.Event{
			App: apps[r.IntN(3)], UserToken: users[r.IntN(4)], Time: ago(300), ID: fmt.Sprint("id", r.IntN(3)),
			ReceivedAt: ago(300), WrittenAt: ago(300).Add(-time.Duration(len(w.rows)) * time.Millisecond), Type: "view",
			Name: fmt.Sprintf("é\"%d.%d", part, i), ObjectIDs: []string{"1", "2"},
			Filters: []warehouse.Filter{{Facet: "color", Value: "Red\n", N: 2}}, UnknownObjects: r.Int64N(2), Event: `{"a":"\"b"}`,
		}
		w.rows = append(w.rows, e)
		text, err := e.Message()
		must.Succeed(t, err)
		events.Write(append(text, '\n'))
	}
	for range 3 {
		until := ago(300).UnixMilli()
		user := append(users, "")[r.IntN(5)]
		row := warehouse.DeletionOf(apps[r.IntN(3)], user, affinity.Tombstone{DeletedUntil: until, ReceivedUntil: until + r.Int64N(300_000)}, now)
		w.deletions = append(w.deletions, row)
		text, err := row.Message()
		must.Succeed(t, err)
		deletions.Write(append(text, '\n'))
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"event_rows": events.String(), "deletions": deletions.String()} {
		path := filepath.Join(folder, name)
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		d.load(t, name, name+".json", path)
	}
}

func check(t *testing.T, d duckDB, w world, seed uint64) {
	t.Helper()
	got := map[string]string{}
	for _, row := range d.query(t, "SELECT app, user_token, epoch_ms(time) AS ms, id, name FROM events") {
		got[fmt.Sprint(row["app"], ",", row["user_token"], ",", row["ms"], ",", row["id"])] = fmt.Sprint(row["name"])
	}
	if want := w.shown(); !maps.Equal(got, want) {
		t.Fatalf("seed %d: the view shows (-want +got):\n%s", seed, cmp.Diff(want, got))
	}
}
