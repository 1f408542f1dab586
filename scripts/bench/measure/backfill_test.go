package measure

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/store"
)

// The backfill copies all rows and the verification finds no difference: else Run
// fails.
func TestBackfill(t *testing.T) {
	report, err := Backfill{Users: 9, Events: 12, Repeat: 2, Common: Common{InProcess: true}}.Run(t.Context(), InProcess)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]RowRate{"backfill": report.Backfill, "read and write": report.ReadAndWrite, "copy": report.Copy} {
		if r.EventsPerSecond <= 0 || r.Seconds <= 0 || r.ClientCPUSeconds <= 0 || r.BytesReceived <= 0 || r.PeakHeapBytes == 0 || len(r.Walls) != 2 {
			t.Errorf("%s: a value is missing: %+v", name, r)
		}
	}
	if report.Ratio <= 0 || report.RatioToCopy <= 0 || report.Transform <= 0 {
		t.Errorf("compared %+v", report)
	}
	if got := turnByTurn(RowRate{Walls: []float64{3, 9, 4}}, RowRate{Walls: []float64{1, 1, 2}}); got != 3 {
		t.Errorf("the median of 3, 9 and 2 is %v", got)
	}
	var text bytes.Buffer
	if err := report.Print(&text); err != nil || !strings.Contains(text.String(), "times as fast as reading and then writing the same rows (bar: 0.60)") {
		t.Errorf("printed %q, %v", text.String(), err)
	}
}

// ReadAndWrite writes the rows that the backfill writes, and Copy the rows that it
// reads. Else the measurements would not compare.
func TestComparedRowsAreEqual(t *testing.T) {
	ctx, c := t.Context(), testClient(t)
	m := migratingLog{c: c, d: newDataset(shape{users: 5, events: 7, facets: 3, selected: 1, values: 2})}
	if err := m.load(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.copyRows(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(allRows(ctx, t, c, store.TableEventsNarrow), allRows(ctx, t, c, tableCopies)); diff != "" {
		t.Errorf("copies (-narrow +copy):\n%s", diff)
	}
	if _, err := m.readAndWrite(ctx); err != nil {
		t.Fatal(err)
	}
	written := allRows(ctx, t, c, tableWide)
	if err := m.begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.backfill(ctx); err != nil {
		t.Fatal(err)
	}
	filled := allRows(ctx, t, c, tableWide)
	if diff := cmp.Diff(filled, written); diff != "" || len(filled) != 35 {
		t.Errorf("%d rows (-backfill +read and write):\n%s", len(filled), diff)
	}
}

// allRows returns the rows of a table by key.
func allRows(ctx context.Context, t *testing.T, c *client, table string) map[string]bigtable.Row {
	t.Helper()
	rows := map[string]bigtable.Row{}
	err := c.raw.Open(table).ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		rows[r.Key()] = r
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The benchmark fails if the verification finds a difference.
func TestBackfillFails(t *testing.T) {
	ctx, c := t.Context(), testClient(t)
	m := migratingLog{c: c, d: newDataset(shape{users: 2, events: 3, facets: 1, selected: 1, values: 1})}
	if err := m.load(ctx); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context) error{m.begin, m.backfill} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	m.migrator.SetPauses(0)
	m.d.users = 3
	if err := m.verify(ctx); err == nil || !strings.Contains(err.Error(), "6 rows compared, want 9") {
		t.Errorf("%v", err)
	}
	if err := m.begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.backfill(ctx); err == nil || !strings.Contains(err.Error(), "6 rows were copied, want 9") {
		t.Errorf("%v", err)
	}
	var flag FlagError
	for _, o := range []Backfill{{Users: 0, Events: 1, Repeat: 1}, {Users: 1, Events: 0, Repeat: 1}, {Users: 1, Events: 1, Repeat: 0}} {
		if _, err := o.Run(ctx, nil); !errors.As(err, &flag) {
			t.Errorf("%+v: %v, want a FlagError", o, err)
		}
	}
}
