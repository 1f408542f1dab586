package store_test

import (
	"fmt"
	"slices"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/store"
)

// Ranges of users cut the rows of an app without a gap, in every table, and never
// reach the rows of another app, whatever its id.
func TestRowsOfAnApp(t *testing.T) {
	t.Parallel()
	s, client := storetest.NewWithClient(t)
	tables, err := store.Tables()
	must.Succeed(t, err)
	put := func(table store.Table, key string) {
		t.Helper()
		m := bigtable.NewMutation()
		m.Set(table.Families[0].Name, "c", 0, nil)
		must.Succeed(t, client.Open(table.Name).Apply(t.Context(), key, m))
	}
	others := []string{",a1,", "a,u,", "a0,u,", "a1-,u,", "a10,u,", "a1_,", "a1A,b,"}
	own := []string{"a1,", "a1,+,", "a1,2026-11-22,03", "a1,b", "a1,b,", "a1,b,2026", "a1,b+,x", "a1,keys", "a1,\xff,\xff"}
	for _, table := range tables {
		for _, key := range slices.Concat(others, own) {
			put(table, key)
		}
	}
	for _, table := range tables {
		var deleted, found int
		for _, r := range []store.AppRows{{To: "b"}, {From: "b", To: "b+"}, {From: "b+", To: "k"}, {From: "k"}} {
			r.App, r.Table = "a1", table.Name
			keys, err := s.Rows.FindRows(t.Context(), r, 99)
			must.Succeed(t, err)
			found += len(keys)
			last := ""
			must.Succeed(t, s.Rows.DeleteRows(t.Context(), r, func(n int, l string) error { deleted, last = deleted+n, l; return nil }))
			if len(keys) > 0 && last != keys[len(keys)-1] {
				t.Errorf("%s: deleted up to %q, want %q", table.Name, last, keys)
			}
		}
		if found != len(own) || deleted != len(own) {
			t.Errorf("%s: found %d and deleted %d rows, want %d", table.Name, found, deleted, len(own))
		}
		for _, app := range []string{"", "a", "a0", "a1-", "a10", "a1_", "a1A"} {
			if keys, err := s.Rows.FindRows(t.Context(), store.AppRows{App: app, Table: table.Name}, 9); err != nil || len(keys) != 1 {
				t.Errorf("%s: app %q has %q (%v), want its row", table.Name, app, keys, err)
			}
		}
	}
	for i := range 5 {
		put(tables[0], fmt.Sprintf("a1,u%d,", i))
	}
	r := store.AppRows{App: "a1", Table: tables[0].Name, After: "a1,u2,"}
	if keys, err := s.Rows.FindRows(t.Context(), r, 1); err != nil || !slices.Equal(keys, []string{"a1,u3,"}) {
		t.Errorf("behind u2 and limited to one: %q, %v", keys, err)
	}
}

// Rows that a range leaves out stay, wherever the range begins and ends.
func TestRowsOfAnAppExcept(t *testing.T) {
	t.Parallel()
	s, client := storetest.NewWithClient(t)
	keys := []string{"a1,d", "a1,d,", "a1,d,1", "a1,d,2", "a1,d-", "a1,e,"}
	for _, key := range append(keys, "a2,d,1") {
		m := bigtable.NewMutation()
		m.Set("o", "c", 0, nil)
		must.Succeed(t, client.Open(store.TableJobs).Apply(t.Context(), key, m))
	}
	for _, test := range []struct {
		rows store.AppRows
		want []string
	}{
		{store.AppRows{}, []string{"a1,d", "a1,d-", "a1,e,"}},
		{store.AppRows{From: "d", To: "e"}, []string{"a1,d-"}},
		{store.AppRows{From: "e"}, []string{"a1,e,"}},
		{store.AppRows{To: "d"}, []string{"a1,d"}},
		{store.AppRows{From: "d", To: "d"}, nil},
		{store.AppRows{After: "a1,d,1"}, []string{"a1,d-", "a1,e,"}},
		{store.AppRows{After: "a1,d,1", To: "d"}, nil},
	} {
		test.rows.App, test.rows.Table, test.rows.Except = "a1", store.TableJobs, "d,"
		if got, err := s.Rows.FindRows(t.Context(), test.rows, 9); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%+v: %q, %v; want %q", test.rows, got, err, test.want)
		}
	}
	all := store.AppRows{App: "a1", Table: store.TableJobs, Except: "d,"}
	must.Succeed(t, s.Rows.DeleteRows(t.Context(), all, func(int, string) error { return nil }))
	all.Except = ""
	if got, err := s.Rows.FindRows(t.Context(), all, 9); err != nil || !slices.Equal(got, keys[1:4]) {
		t.Errorf("left are %q, %v; want %q", got, err, keys[1:4])
	}
}
