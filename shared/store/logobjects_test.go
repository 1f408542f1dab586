package store_test

import (
	"context"
	"fmt"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

// bought returns an event that names objects of the index products. Its original
// says the same as its objects.
func bought(user string, ms int64, counts []affinity.Count, ids ...string) store.LogEvent {
	e := store.LogEvent{User: user, Time: ms, ID: fmt.Sprintf("id%09d", ms), Type: event.Conversion, Name: "Bought, twice", Counts: counts}
	targets := `"filters":["color:Red"]`
	if len(ids) > 0 {
		e.Index, e.ObjectIDs = "products", ids
		targets = fmt.Sprintf(`"objectIDs":[%q`, ids[0])
		for _, id := range ids[1:] {
			targets += fmt.Sprintf(",%q", id)
		}
		targets += "]"
	}
	e.Original = schema.Original{ReceivedAt: ms + 1, Index: "products", Event: fmt.Appendf(nil,
		`{"eventType":"conversion","eventName":"Bought, twice","userToken":%q,"timestamp":%d,%s}`, user, ms, targets)}.Append(nil)
	return e
}

// somethingBought is events with filters that clicks scores, with others, and with
// none.
func somethingBought() []store.LogEvent {
	red := []affinity.Count{{Facet: "color", Value: "Red", N: 1}}
	return []store.LogEvent{
		bought("u", 1_600_000_001_000, red, "b", "a"), bought("u", 1_600_000_002_000, nil, "c"),
		bought("u", 1_600_000_003_000, red), bought("u", 1_600_000_004_000, []affinity.Count{{Facet: "size", Value: "L", N: 1}}, "a"),
	}
}

// named returns the kind and the objects of events, as read.
func named(e affinity.Event) schema.Objects {
	return schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs}
}

func wantNamed(events []store.LogEvent) []schema.Objects {
	var want []schema.Objects
	for _, e := range events {
		want = append(want, schema.Objects{Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs})
	}
	return want
}

// reads are the ways to read objects from the log. Each returns rows that may
// lack the cell of their objects.
func (b fixture) reads(st *affinity.Compiled) map[string]func(fn func(string, store.LogRow) error) error {
	ctx, ranges, l := context.Background(), wholeLogs, b.log()
	return map[string]func(fn func(string, store.LogRow) error) error{
		"Read":            func(fn func(string, store.LogRow) error) error { return l.Read(ctx, ranges, fn) },
		"ReadWithObjects": func(fn func(string, store.LogRow) error) error { return l.ReadWithObjects(ctx, ranges, st, fn) },
		"ReadObjects":     func(fn func(string, store.LogRow) error) error { return l.ReadObjects(ctx, ranges, fn) },
		"Scan": func(fn func(string, store.LogRow) error) error {
			return l.Scan(ctx, b.layout.Read, store.Range{}, 0, func(e store.Entry) error { return fn(e.User, e.LogRow) })
		},
	}
}

// A reading of objects knows them and the kind of every event, whatever the
// strategy scores.
func testObjectsOfRows(t *testing.T, s fixture) {
	events := somethingBought()
	if err := s.log().Append(context.Background(), events); err != nil {
		t.Fatal(err)
	}
	if err := s.log().Copy(context.Background(), s.layout.Read, events[:2]); err != nil {
		t.Fatal(err)
	}
	for name, st := range map[string]*affinity.Compiled{"few columns": affinity.Compile(clicks), "more columns than a filter holds": affinity.Compile(manyFacets())} {
		for way, read := range s.reads(st) {
			var got []schema.Objects
			err := read(func(_ string, row store.LogRow) error {
				e, err := row.Event()
				got = append(got, named(e))
				return err
			})
			if diff := cmp.Diff(wantNamed(events), got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%s, %s: %v (-want +got):\n%s", way, name, err, diff)
			}
		}
	}
	err := s.log().ReadFor(context.Background(), wholeLogs, affinity.Compile(clicks), func(_ string, row store.LogRow) error {
		if _, ok := row.Objects(); ok {
			t.Error("a reading for scores has read objects")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Rows of an older version have no cell for their objects, and a damaged cell
// counts as none: the original says the same.
func testObjectsOfOlderRows(t *testing.T, s fixture) {
	ctx, events, broken := context.Background(), somethingBought(), bought("v", 1_600_000_005_000, nil, "x")
	unreadable := bought("v", 1_600_000_006_000, []affinity.Count{{Facet: "color", Value: "Red", N: 1}}, "y")
	unreadable.Original = []byte("{")
	if err := s.log().Append(ctx, append(events, broken, unreadable)); err != nil {
		t.Fatal(err)
	}
	table := s.client.Open(map[schema.Name]string{schema.Wide: store.TableEvents, schema.Narrow: store.TableEventsNarrow}[s.layout.Read])
	err := table.ReadRows(ctx, bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		m := bigtable.NewMutation()
		m.DeleteCellsInColumn("m", "o")
		if r.Key() == "shop,v,2020-09-13T12:26:45.000Z,"+broken.ID {
			m.Set("m", "o", bigtable.Timestamp(broken.Time*1000), []byte{1, 200})
		}
		if err := table.Apply(ctx, r.Key(), m); err != nil {
			t.Fatal(err)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	want := wantNamed(append(events, broken))
	for way, read := range s.reads(affinity.Compile(clicks)) {
		var rows []*store.LogRow
		err := read(func(_ string, row store.LogRow) error {
			if _, ok := row.Objects(); ok {
				t.Errorf("%s: row %v has objects", way, row.Pos)
			}
			rows = append(rows, &row)
			return nil
		})
		if err == nil {
			err = s.log().CompleteObjects(ctx, rows)
		}
		if err != nil {
			t.Fatal(way, err)
		}
		var got []schema.Objects
		for _, row := range rows {
			e, err := row.Event()
			if _, ok := row.Objects(); !ok || err != nil {
				t.Errorf("%s: row %v has no objects, %v", way, row.Pos, err)
			}
			got = append(got, named(e))
		}
		if last := got[len(got)-1]; last.Index != "" || len(last.ObjectIDs) > 0 {
			t.Errorf("%s: objects %+v of an original that does not decode", way, last)
		}
		if diff := cmp.Diff(want, got[:len(want)], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", way, diff)
		}
	}
	var got []schema.Objects
	err = s.log().Scan(ctx, s.layout.Read, store.Range{To: "v"}, 0, func(e store.Entry) error {
		o, err := e.Objects()
		got = append(got, o)
		return err
	})
	if diff := cmp.Diff(want[:4], got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("entries: %v (-want +got):\n%s", err, diff)
	}
}
