package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/history"
	"github.com/affinityengine/affinity/shared/store"
	"github.com/affinityengine/affinity/shared/store/storetest"
	"github.com/affinityengine/affinity/shared/strategy"
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
		if err := s.AppendLog(context.Background(), app, log); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(log))/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkScoreLog(b *testing.B) {
	const users, events = 100, 50
	s := storetest.New(b)
	if err := s.AppendLog(context.Background(), app, benchLog(users, events)); err != nil {
		b.Fatal(err)
	}
	var spans []store.Span
	for u := range users {
		spans = append(spans, store.Span{User: fmt.Sprint("user", u), To: history.End})
	}
	for _, n := range []int{0, 1, 3, 12, 24, 99} {
		c, w := benchStrategy(min(n, 3), min((n+2)/3, 8)), affinity.Window{Now: 2_000_000_000_000}
		if n == 99 {
			c = benchStrategy(30, 8)
		}
		b.Run(fmt.Sprint("columns=", n), func(b *testing.B) {
			for range b.N {
				if _, err := s.ScoreLog(context.Background(), app, spans, c, func(string) *affinity.Scorer {
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
			if _, err := s.TakeTicket(context.Background(), app, "u"); err != nil {
				b.Error(err)
			}
		}
	})
}
