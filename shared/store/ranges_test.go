package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const lastMS = int64(253402300799999) // the end of the year 9999

// testUserRanges checks Read with random ranges.
func testUserRanges(t *testing.T, s fixture) {
	ctx, users := context.Background(), []string{"u+", "u", "u0"} // in the order of keys
	times := []int64{0, 1, 2, lastMS}
	ids := []string{"a", "a,b", "b"}
	var log []store.LogEvent
	for _, user := range users {
		for _, ms := range times {
			for _, id := range ids {
				log = append(log, store.LogEvent{User: user, Time: ms, ID: id, Type: event.View, Name: "Seen", Original: []byte("{}"),
					Counts: []affinity.Count{{Facet: "color", Value: user, N: 1}}})
			}
		}
	}
	must.Succeed(t, s.log().Append(ctx, log))
	place := rapid.Custom(func(t *rapid.T) history.Pos {
		p := history.Pos{
			Time: rapid.SampledFrom(append([]int64{-1 << 63, -5, 3, lastMS + 1}, times...)).Draw(t, "time"),
			ID:   rapid.SampledFrom(append([]string{"", "aa", "z"}, ids...)).Draw(t, "id"),
		}
		return rapid.SampledFrom([]history.Pos{p, p, p.Next(), history.End, {}}).Draw(t, "place")
	})
	rapid.Check(t, func(t *rapid.T) {
		ranges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) store.UserRange {
			return store.UserRange{User: rapid.SampledFrom(users).Draw(t, "user"), From: place.Draw(t, "from"), To: place.Draw(t, "to")}
		}), 0, 4).Draw(t, "ranges")
		var want, got []string
		for _, e := range log {
			at := history.Pos{Time: e.Time, ID: e.ID}
			if slices.ContainsFunc(ranges, func(sp store.UserRange) bool {
				return sp.User == e.User && sp.From.Compare(at) <= 0 && at.Compare(sp.To) < 0
			}) {
				want = append(want, fmt.Sprint(e.User, at))
			}
		}
		err := s.log().Read(ctx, ranges, func(user string, row store.LogRow) error {
			got = append(got, fmt.Sprint(user, row.Pos))
			e, err := row.Event()
			if len(e.Counts) != 1 || e.Counts[0].Value != user || e.Time != row.Time {
				t.Fatalf("%s %v: %+v", user, row.Pos, e)
			}
			return err
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("ranges %+v: %q, %v; want %q", ranges, got, err, want)
		}
	})
}

// three are events as different as they get.
func three() []store.LogEvent {
	plain := click("u", 1000, affinity.Count{Facet: "color", Value: "Red", N: 2}, affinity.Count{Facet: "color", Value: "Blue", N: 1},
		affinity.Count{Facet: `a,b`, Value: "x,\x00", N: 300}, affinity.Count{Facet: "size", Value: "", N: 1})
	plain.Original = []byte("one")
	none := click("u", 2000) // an object the catalog does not know
	none.Original = []byte("two")
	unscored := click("v", 500, affinity.Count{Facet: "color", Value: "Green", N: 1})
	unscored.Type, unscored.Name, unscored.Original = event.View, "Seen", []byte("three")
	return []store.LogEvent{plain, none, unscored}
}

var wholeLogs = []store.UserRange{{User: "u", To: history.End}, {User: "v", To: history.End}}

// decoded are rows, kept until the reading was over, as events.
func decoded(t *testing.T, rows []store.LogRow) []affinity.Event {
	t.Helper()
	var events []affinity.Event
	for _, row := range rows {
		e, err := row.Event()
		must.Succeed(t, err)
		events = append(events, e)
	}
	return events
}

func testOriginals(t *testing.T, s fixture) {
	ctx := context.Background()
	must.Succeed(t, s.log().Append(ctx, three()))
	var rows []store.LogRow
	var got []string
	err := s.log().ReadOriginals(ctx, wholeLogs, func(user string, row store.LogRow, original []byte) error {
		rows = append(rows, row)
		got = append(got, user+" "+string(original))
		return nil
	})
	if want := []string{"u one", "u two", "v three"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	want := []affinity.Event{
		{Time: 1000, Type: event.Click, Name: `Clicked, "again"`, Counts: []affinity.Count{{Facet: "a,b", Value: "x,\x00", N: 300},
			{Facet: "color", Value: "Red", N: 2}, {Facet: "color", Value: "Blue", N: 1}, {Facet: "size", Value: "", N: 1}}},
		{Time: 2000, Type: event.Click, Name: `Clicked, "again"`}, // in a wide row, the cell of the objects alone says so
		{Time: 500, Type: event.View, Name: "Seen", Counts: []affinity.Count{{Facet: "color", Value: "Green", N: 1}}},
	}
	inOrder := cmp.Transformer("set", func(counts []affinity.Count) map[affinity.Count]bool {
		set := map[affinity.Count]bool{} // columns are in the order of their quoted names
		for _, c := range counts {
			set[c] = true
		}
		return set
	})
	if diff := cmp.Diff(want, decoded(t, rows), inOrder); diff != "" {
		t.Errorf("with originals (-want +got):\n%s", diff)
	}
	rows = nil
	err = s.log().Read(ctx, wholeLogs, func(_ string, row store.LogRow) error {
		rows = append(rows, row)
		return nil
	})
	if diff := cmp.Diff(want, decoded(t, rows), inOrder); err != nil || diff != "" {
		t.Errorf("%v; without originals (-want +got):\n%s", err, diff)
	}
}

func testRowsForAStrategy(t *testing.T, s fixture) {
	ctx, c := context.Background(), affinity.Compile(clicks)
	must.Succeed(t, s.log().Append(ctx, three()))
	var rows []store.LogRow
	scorer, ls := affinity.NewScorer(c, affinity.Window{Now: 5000}), store.NewLogScorer(c)
	err := s.log().ReadFor(ctx, wholeLogs, c, func(user string, row store.LogRow) error {
		rows = append(rows, row)
		return ls.Score(row, scorer)
	})
	must.Succeed(t, err)
	var facets []string
	for _, e := range decoded(t, rows) {
		facets = append(facets, "|")
		for _, c := range e.Counts {
			facets = append(facets, c.Facet)
		}
	}
	slices.Sort(facets)
	want := []string{"a,b", "color", "color", "|", "|", "|"}
	if s.layout.Read == schema.Narrow { // whose rows travel whole
		want = []string{"a,b", "color", "color", "color", "size", "|", "|", "|"}
	}
	if !slices.Equal(facets, want) {
		t.Errorf("facets %q of three events, want %q: what does not score stays behind", facets, want)
	}
	profile := affinity.Reference([]affinity.Event{{Time: 1000, Type: event.Click, Name: clicks.EventsScoring[0].EventName, Counts: three()[0].Counts}, {Time: 2000}, {Time: 500}},
		clicks, affinity.Window{Now: 5000})
	got := scorer.Profile()
	if diff := cmp.Diff(profile.Affinities, got.Affinities); diff != "" || got.LastEventAt != 2000 {
		t.Errorf("last event at %d; affinities (-want +got):\n%s", got.LastEventAt, diff)
	}
	n, err := s.log().Score(ctx, wholeLogs, c, func(string) *affinity.Scorer { return affinity.NewScorer(c, affinity.Window{Now: 1500}) })
	if n != 3 || err != nil {
		t.Errorf("%d events, %v; want all three, one of them ahead of the window", n, err)
	}
}

func testManyUsers(t *testing.T, s fixture) {
	ctx := context.Background()
	var writes []store.ProfileWrite
	var users []string
	for i := range 1500 { // more than one request of rows
		user := fmt.Sprintf("user%d", i)
		users = append(users, user)
		writes = append(writes, store.ProfileWrite{User: user, Row: store.User{Ticket: 1}, Value: []byte(user), Version: int64(i + 1)})
	}
	write(t, s, writes...)
	rows, err := s.Users.ReadUsers(ctx, app, append([]string{"nobody"}, users...))
	if err != nil || len(rows) != len(users) {
		t.Fatalf("%d rows, %v; want %d", len(rows), err, len(users))
	}
	for i, user := range users {
		if row := rows[user]; string(row.Profile) != user || row.Version != int64(i+1) {
			t.Fatalf("row of %s: %+v", user, row)
		}
	}
	slices.SortFunc(users, store.UserOrder)
	var got []string
	for from := ""; ; { // as a recompute goes through them
		var chunk []string
		err := s.Users.ScanUsers(ctx, app, from, "", 401, store.UserState, func(user string, _ store.User) error {
			chunk = append(chunk, user)
			return nil
		})
		if err != nil || len(chunk) > 401 {
			t.Fatalf("%d users, %v", len(chunk), err)
		}
		if len(chunk) < 401 {
			got = append(got, chunk...)
			break
		}
		got, from = append(got, chunk[:400]...), chunk[400]
	}
	if !slices.Equal(got, users) {
		t.Errorf("%d users in chunks, want all %d in order", len(got), len(users))
	}
}
