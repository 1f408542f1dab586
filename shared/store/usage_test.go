package store_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/store"
)

const usageDay usage.Day = 20_000

func usageOf(t *testing.T, s fixture, from, to usage.Day) map[usage.Day]usage.Counts {
	t.Helper()
	days, err := s.Usage.Usage(context.Background(), app, from, to)
	must.Succeed(t, err)
	return days
}

func testUsage(t *testing.T, s fixture) {
	ctx := context.Background()
	add := func(b usage.Batch) {
		t.Helper()
		must.Succeed(t, s.Usage.AddUsage(ctx, b))
	}
	first := usage.Batch{App: app, Day: usageDay, Process: "p", Number: 1, Counts: usage.Counts{Events: 1, Refused: 2, Reads: 3, Rows: 4, Bytes: 1 << 40}}
	second := usage.Batch{App: app, Day: usageDay, Process: "p", Number: 2, Counts: usage.Counts{Events: 10}}
	add(first)
	for _, b := range []usage.Batch{first, second, second} {
		b.Repeated = true // the second batch was not written by its first attempt
		add(b)
	}
	add(usage.Batch{App: app, Day: usageDay, Shard: 15, Process: "q", Number: 1, Counts: usage.Counts{Events: 100}})
	add(usage.Batch{App: app, Day: usageDay + 2, Process: "p", Number: 1, Counts: usage.Counts{Reads: 5}})
	add(usage.Batch{App: app + "2", Day: usageDay, Process: "p", Number: 1, Counts: usage.Counts{Events: 1000}})

	all := map[usage.Day]usage.Counts{
		usageDay:     {Events: 111, Refused: 2, Reads: 3, Rows: 4, Bytes: 1 << 40},
		usageDay + 2: {Reads: 5},
	}
	if diff := cmp.Diff(all, usageOf(t, s, usageDay, usageDay+2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(all, usageDay+2)
	if diff := cmp.Diff(all, usageOf(t, s, usageDay-5, usageDay+1)); diff != "" {
		t.Errorf("two days later is included (-want +got):\n%s", diff)
	}
}

// Names are added with the counts of their batch, once.
func testNames(t *testing.T, s fixture) {
	ctx := t.Context()
	seen, bought := usage.Kind{Type: "view", Name: "Seen, again"}, usage.Kind{Type: "conversion", Name: "Bought"}
	batch := usage.Batch{App: app, Day: usageDay, Process: "p", Number: 1, Counts: usage.Counts{Events: 3}, Names: usage.Names{
		Events: map[usage.Kind]int64{seen: 2, bought: 1}, Facets: map[string]int64{"brand": 3, "a,b": 1, "left": 1},
		Nobody: map[string]int64{"undefined": 2, "left": 1}, Left: 7,
	}}
	other := usage.Batch{App: app, Day: usageDay + 1, Shard: 3, Process: "q", Number: 1, Names: usage.Names{Events: map[usage.Kind]int64{seen: 10}}}
	foreign := other
	foreign.App = app + "2"
	for _, b := range []usage.Batch{batch, other, foreign} {
		for range 2 {
			must.Succeed(t, s.Usage.AddUsage(ctx, b))
			b.Repeated = true
		}
	}
	for days, want := range map[usage.Day]usage.Names{
		0: batch.Names,
		1: {Events: map[usage.Kind]int64{seen: 12, bought: 1}, Facets: batch.Names.Facets, Nobody: batch.Names.Nobody, Left: 7},
	} {
		got, err := s.Usage.Names(ctx, app, usageDay, usageDay+days)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%d days later: %v (-want +got):\n%s", days, err, diff)
		}
	}
	known, err := s.Usage.KnownNames(ctx, app, usageDay, 0)
	if diff := cmp.Diff(batch.Names, known); diff != "" || err != nil {
		t.Errorf("known: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[usage.Day]usage.Counts{usageDay: {Events: 3}}, usageOf(t, s, usageDay, usageDay+1)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func testHotUsers(t *testing.T, s fixture) {
	ctx := context.Background()
	put := func(day usage.Day, shard int, process string, users ...usage.User) {
		t.Helper()
		must.Succeed(t, s.Usage.PutHotUsers(ctx, app, day, shard, process, users))
	}
	put(usageDay, 0, "p", usage.User{Token: "ann", Events: 1})
	put(usageDay, 0, "p", usage.User{Token: "ann", Events: 5}) // replaces
	put(usageDay, 0, "q", usage.User{Token: "bob", Events: 6})
	put(usageDay, 3, "r", usage.User{Token: "ann", Events: 2})
	put(usageDay+1, 3, "r", usage.User{Token: "cid", Events: 9})
	users, err := s.Usage.HotUsers(ctx, app, usageDay, usageDay)
	must.Succeed(t, err)
	if diff := cmp.Diff([]usage.User{{Token: "ann", Events: 7}, {Token: "bob", Events: 6}}, users); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A deletion takes a user from all lists, and processes learn of it. The lists of others stay.
func testHotUserIsForgotten(t *testing.T, s fixture) {
	ctx := t.Context()
	ann, bob := usage.User{Token: "ann", Events: 5}, usage.User{Token: "bob", Events: 4}
	for shard, day := range []usage.Day{usageDay, usageDay, usageDay - 6} {
		must.Succeed(t, s.Usage.PutHotUsers(ctx, app, day, shard, "p", []usage.User{ann}))
		must.Succeed(t, s.Usage.PutHotUsers(ctx, app, day, shard, "p", []usage.User{ann, bob}))
		must.Succeed(t, s.Usage.PutHotUsers(ctx, app, day, shard, "q", []usage.User{ann}))
		must.Succeed(t, s.Usage.PutHotUsers(ctx, app+"2", day, shard, "q", []usage.User{ann}))
	}
	now := usageDay.Time().Add(time.Hour)
	for _, until := range []time.Time{now, now.Add(time.Minute)} { // a purge is repeated
		must.Succeed(t, s.Usage.ForgetHotUser(ctx, app, "", "ann", now, until))
		deleted, err := s.Usage.Deleted(ctx, app, []usage.User{bob, ann})
		if want := (map[string]time.Time{"ann": until}); err != nil || !maps.EqualFunc(deleted, want, time.Time.Equal) {
			t.Errorf("deleted: %v, %v, want %v", deleted, err, want)
		}
	}
	for of, want := range map[string][]usage.User{app: {{Token: "bob", Events: 12}}, app + "2": {{Token: "ann", Events: 15}}} {
		users, err := s.Usage.HotUsers(ctx, of, usageDay-7, usageDay)
		if diff := cmp.Diff(want, users); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", of, err, diff)
		}
	}
	named := 0
	must.Succeed(t, s.client.Open(store.TableUsage).ReadRows(ctx, bigtable.PrefixRange(app+","), func(r bigtable.Row) bool {
		for _, item := range r["h"] {
			if strings.Contains(string(item.Value), "ann") {
				named++
			}
		}
		return true
	}))
	if named > 0 {
		t.Errorf("%d cells name the user, with those that Bigtable has yet to collect", named)
	}
}

func testKeyDays(t *testing.T, s fixture) {
	ctx := context.Background()
	for _, days := range []map[string]usage.Day{
		{"a": usageDay, "b": usageDay}, {"a": usageDay + 1}, {"a": usageDay - 1}, // of a slower process
	} {
		must.Succeed(t, s.Usage.PutKeyDays(ctx, app, days))
	}
	got, err := s.Usage.LastUsed(ctx, app)
	must.Succeed(t, err)
	if want := (map[string]usage.Day{"a": usageDay + 1, "b": usageDay}); !maps.Equal(got, want) {
		t.Errorf("last used %v, want %v", got, want)
	}
	if days := usageOf(t, s, usageDay, usageDay); len(days) != 0 {
		t.Errorf("keys are counted as usage: %v", days)
	}
}

// A store counts the rows that it writes and reads under the app of their keys,
// and not what it does with the table of usage.
func testMeter(t *testing.T, s fixture) {
	ctx := context.Background()
	s.layout = schema.Default()
	now := time.Now()
	counter := usage.NewCounter(s.Store.Usage, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	flush := func() usage.Counts {
		t.Helper()
		must.Succeed(t, counter.Flush(ctx))
		return usageOf(t, s, usage.DayOf(now), usage.DayOf(now))[usage.DayOf(now)]
	}
	if _, err := s.Users.TakeTicket(ctx, app, "u"); err != nil {
		t.Fatal(err)
	}
	s.CountIn(counter)
	must.Succeed(t, s.log().Append(ctx, []store.LogEvent{click("u", 1000, affinity.Count{Facet: "a", Value: "b", N: 1}), click("u", 2000)}))
	wrote := flush()
	if wrote.Rows != 2 || wrote.Bytes < 2*30 || wrote.Bytes > 500 {
		t.Errorf("two written rows count as %+v", wrote)
	}
	if _, err := s.Users.TakeTicket(ctx, app, "u"); err != nil { // a transaction: one row
		t.Fatal(err)
	}
	must.Succeed(t, s.log().Scan(ctx, s.layout.Read, store.Range{}, 0, func(store.Entry) error { return nil }))
	read := flush()
	if read.Rows != 5 || read.Bytes <= wrote.Bytes {
		t.Errorf("two written rows, a transaction and two read rows count as %+v", read)
	}
	if again := flush(); again != read {
		t.Errorf("usage counts itself: %+v after %+v", again, read)
	}
}
