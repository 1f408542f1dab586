package main

import (
	"path/filepath"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// The messages of an engine, loaded into the table, are what a dump has: of each user as many events, with the
// filters of objects that came later, and none of a deleted person once the deletion has run.
func TestMessagesAgreeWithDump(t *testing.T) {
	t.Parallel()
	d := startDuckDB(t)
	folder := t.TempDir()
	s, c := start(t, stack.Options{Warehouse: folder})
	fill(t, s, c)
	d.create(t, "event_rows", "event_rows.json")
	d.create(t, "deletions", "deletions.json")
	d.query(t, "CREATE VIEW events AS %s", sql(t, "view.sql"))
	d.load(t, "event_rows", "event_rows.json", filepath.Join(folder, "warehouse", "**", "*.ndjson"))
	d.load(t, "deletions", "deletions.json", filepath.Join(folder, "warehouse-deletions", "**", "*.ndjson"))
	want, total := dumped(t, c)
	agree := func(when string) {
		t.Helper()
		if n := d.number(t, "SELECT count(*) FROM events"); n != total || total < 400 {
			t.Errorf("%s the view has %d events, the dump %d", when, n, total)
		}
		for _, row := range d.query(t, "SELECT user_token, count(*)::INT AS n FROM events GROUP BY user_token") {
			if user, n := row["user_token"].(string), int(row["n"].(float64)); want[user] != n {
				t.Errorf("%s the view has %d events of %s, the dump %d", when, n, user, want[user])
			}
		}
		if n := d.number(t, `SELECT count(*) FROM events WHERE user_token = 'u0' AND
			list_contains(list_transform(filters, f -> f.facet || ':' || f."value"), 'color:Green')`); n < 20 {
			t.Errorf("%s %d events have the filters of the object that came later", when, n)
		}
	}
	agree("at first")
	deleted := "SELECT count(*) FROM event_rows WHERE user_token IN ('u1', 'u3')"
	if n := d.number(t, "%s", deleted); n < 200 {
		t.Errorf("the table has %d rows of deleted users before the deletion, want those that were written", n)
	}
	d.query(t, "%s", sql(t, "delete.sql"))
	if n := d.number(t, "%s", deleted); n < 200 {
		t.Errorf("the deletion reached rows that BigQuery does not delete yet: %d are left", n)
	}
	d.query(t, "UPDATE event_rows SET written_at = written_at - INTERVAL 2 HOUR")
	d.query(t, "%s", sql(t, "delete.sql"))
	if n := d.number(t, "%s", deleted); n != 0 {
		t.Errorf("%d rows of deleted users are left", n)
	}
	agree("after the deletion")
	if n := d.number(t, "SELECT count(*) FROM event_rows WHERE user_token = 'u2' AND type = 'conversion'"); n != 0 {
		t.Errorf("%d rows are of a type that the user is out of", n)
	}
	// The app goes, and with it all rows.
	must.Succeed(t, s.Backends.Warehouse.AppDeletion(t.Context(), "demo"))
	must.Succeed(t, s.Idle(t.Context()))
	d.load(t, "deletions", "deletions.json", filepath.Join(folder, "warehouse-deletions", "**", "*.ndjson"))
	d.query(t, "%s", sql(t, "delete.sql"))
	if n := d.number(t, "SELECT count(*) FROM event_rows"); n != 0 {
		t.Errorf("%d rows of a deleted app are left", n)
	}
}
