package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
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

// reads are the ways to read objects from the log.
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
	must.Succeed(t, s.log().Append(context.Background(), events))
	must.Succeed(t, s.log().Copy(context.Background(), s.layout.Read, events[:2]))
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
