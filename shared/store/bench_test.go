package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/schema"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// benchLog is the log of some users of a clothes shop: eight facets, one value
// each, three kinds of events.
func benchLog(users, events int) []store.LogEvent {
	log := make([]store.LogEvent, 0, users*events)
	for u := range users {
		for i := range events {
			e := store.LogEvent{User: fmt.Sprint("user", u), Time: int64(1_700_000_000_000 + i*60_000), ID: fmt.Sprintf("id%09d", i),
				Type: event.Click, Name: fmt.Sprint("Event ", i%3), Original: make([]byte, 200)}
			for f := range 8 {
				e.Counts = append(e.Counts, affinity.Count{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value", (i+f)%20), N: 1})
			}
			log = append(log, e)
		}
	}
	return log
}

func benchStrategy(events, facets int) *affinity.Compiled {
	var st strategy.Strategy
	for i := range events {
		st.EventsScoring = append(st.EventsScoring, strategy.EventScore{EventName: fmt.Sprint("Event ", i), EventType: event.Click, Score: 1})
	}
	for i := range facets {
		st.FacetsScoring = append(st.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint("facet", i), Score: 1})
	}
	return affinity.Compile(st)
}

func BenchmarkAppendLog(b *testing.B) {
	s, log := storetest.New(b), benchLog(100, 10)
	b.ResetTimer()
	for range b.N {
		must.Succeed(b, s.Events.Log(app, schema.Default()).Append(context.Background(), log))
	}
	b.ReportMetric(float64(b.N*len(log))/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkScoreLog(b *testing.B) {
	const users, events = 100, 50
	s := storetest.New(b)
	must.Succeed(b, s.Events.Log(app, schema.Default()).Append(context.Background(), benchLog(users, events)))
	var ranges []store.UserRange
	for u := range users {
		ranges = append(ranges, store.UserRange{User: fmt.Sprint("user", u), To: history.End})
	}
	for _, n := range []int{0, 1, 3, 12, 24, 99} {
		c, w := benchStrategy(min(n, 3), min((n+2)/3, 8)), affinity.Window{Now: 2_000_000_000_000}
		if n == 99 {
			c = benchStrategy(30, 8)
		}
		b.Run(fmt.Sprint("columns=", n), func(b *testing.B) {
			for range b.N {
				if _, err := s.Events.Log(app, schema.Default()).Score(context.Background(), ranges, c, func(string) *affinity.Scorer {
					return affinity.NewScorer(c, w)
				}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*users*events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func BenchmarkTakeTicket(b *testing.B) {
	s := storetest.New(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Users.TakeTicket(context.Background(), app, "u"); err != nil {
				b.Error(err)
			}
		}
	})
}

// benchUsers are users with profiles of 300 affinities and three blocks of 10 KB
// each.
func benchUsers(b *testing.B, users int) *store.Store {
	b.Helper()
	s, ctx := storetest.New(b), context.Background()
	var writes []store.ProfileWrite
	for u := range users {
		user := fmt.Sprint("user", u)
		row, err := s.Users.TakeTicket(ctx, app, user)
		must.Succeed(b, err)
		var blocks []store.BlockWrite
		for n := range 3 {
			blocks = append(blocks, store.BlockWrite{ID: history.BlockID{Ticket: 1, N: n}, Value: make([]byte, 10_000)})
		}
		must.Succeed(b, s.Histories.WriteBlocks(ctx, app, user, blocks))
		writes = append(writes, store.ProfileWrite{User: user, Row: row, Value: make([]byte, 8_000), Summary: make([]byte, 30), Version: 1})
	}
	must.Succeed(b, s.Users.WriteProfiles(ctx, app, writes))
	return s
}

func BenchmarkScanUsers(b *testing.B) {
	const users = 1000
	s, ctx := benchUsers(b, users), context.Background()
	for name, scan := range map[string]func() error{
		"keys": func() error { return s.Users.ScanUserKeys(ctx, app, "", "", func(string) error { return nil }) },
		"state": func() error {
			return s.Users.ScanUsers(ctx, app, "", "", 0, store.UserState, func(string, store.User) error { return nil })
		},
		"summary": func() error {
			return s.Users.ScanUsers(ctx, app, "", "", 0, store.UserSummary, func(string, store.User) error { return nil })
		},
		"profile": func() error {
			return s.Users.ScanUsers(ctx, app, "", "", 0, store.UserProfile, func(string, store.User) error { return nil })
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				must.Succeed(b, scan())
			}
			b.ReportMetric(float64(b.N*users)/b.Elapsed().Seconds(), "users/s")
		})
	}
}

func BenchmarkReadUser(b *testing.B) {
	s := benchUsers(b, 100)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := s.Users.ReadUser(context.Background(), app, "user7"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScanBlocks reads blocks as one stream, by name, and their keys alone.
func BenchmarkScanBlocks(b *testing.B) {
	const users, blocks = 500, 3
	s, ctx := benchUsers(b, users), context.Background()
	var names []store.BlockName
	for u := range users {
		for n := range blocks {
			names = append(names, store.BlockName{User: fmt.Sprint("user", u), ID: history.BlockID{Ticket: 1, N: n}})
		}
	}
	ignore := func(store.BlockName, []byte) error { return nil }
	for name, read := range map[string]func() error{
		"stream": func() error { return s.Histories.ScanBlocks(ctx, app, "", "", ignore) },
		"named":  func() error { return s.Histories.ReadBlocks(ctx, app, names, ignore) },
		"keys": func() error {
			return s.Histories.ScanBlockKeys(ctx, app, "", "", func(store.BlockName) error { return nil })
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				must.Succeed(b, read())
			}
			b.ReportMetric(float64(b.N*users*blocks)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}

// BenchmarkPutObjects puts a batch of 1,000 objects of 1 KB that are there already, in
// an index without dates, and in one that has one.
func BenchmarkPutObjects(b *testing.B) {
	objects := make([]store.Object, 1000)
	for i := range objects {
		record := fmt.Sprintf(`{"objectID":"%d","text":%q,"at":"2026-11-%02d"}`, i, strings.Repeat("x", 1000), 1+i%28)
		objects[i] = store.Object{ID: fmt.Sprint("post", i), Record: []byte(record),
			Filters: store.ObjectFilters{Filters: []event.Filter{{Facet: "color", Value: "Red"}, {Facet: "brand", Value: "Acme"}}}}
	}
	for name, dates := range map[string][]string{"dates=0": nil, "dates=1": {"at"}} {
		b.Run(name, func(b *testing.B) {
			s := storetest.New(b)
			for range b.N {
				must.Succeed(b, s.Catalog.PutObjects(context.Background(), app, "posts", objects, dates...))
			}
		})
	}
}
