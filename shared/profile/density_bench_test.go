package profile_test

import (
	"fmt"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/cpu"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/storetest"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkDensity computes profiles of users with few or many events.
func BenchmarkDensity(b *testing.B) {
	for _, n := range []int{5, 50, 500} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			var events []store.LogEvent
			for u := range 2_000 / n {
				for i := range n {
					e := benchEvent(1_700_000_000_000-hour-int64(i)*60_000, u+i)
					e.User = fmt.Sprintf("user-%d", u)
					events = append(events, withReceipt(e))
				}
			}
			benchWays(b, events, plain)
		})
	}
}

// BenchmarkRealData computes the profiles of real shops.
func BenchmarkRealData(b *testing.B) {
	for _, set := range realdata.With(b, realdata.StrategyFile) {
		b.Run(set, func(b *testing.B) {
			filters := map[string][]event.Filter{}
			for _, o := range realdata.Objects(b, set) {
				filters[o.ID] = o.Filters
			}
			var events []store.LogEvent
			for e := range realdata.Events(b, set) {
				l := store.LogEvent{User: e.UserToken, Time: e.Time, ID: e.ID(), Type: e.Type, Name: e.Name, Index: e.Index, ObjectIDs: e.ObjectIDs, Original: []byte("{}")}
				for _, id := range e.ObjectIDs {
					for _, f := range filters[id] {
						l.Counts = append(l.Counts, affinity.Count{Facet: f.Facet, Value: f.Value, N: 1})
					}
				}
				if events = append(events, withReceipt(l)); len(events) == 10_000 {
					break
				}
			}
			benchWays(b, events, realdata.Strategy(b, set))
		})
	}
}

// withReceipt gives an event a receipt.
func withReceipt(e store.LogEvent) store.LogEvent {
	e.Receipt = e.Time + 50
	return e
}

// benchWays measures the ways of events to profiles: their scores alone, a recompute,
// the write of rows, and messages of one event.
func benchWays(b *testing.B, events []store.LogEvent, st strategy.Strategy) {
	f := newFixtureOn(b, storetest.NewWithClient, 0, st)
	f.eng.NeverFold()
	byUser := map[string][]affinity.Event{}
	for _, e := range events {
		f.clock = max(f.clock, e.Time+hour)
		byUser[e.User] = append(byUser[e.User], affinity.Event{Time: e.Time, Type: e.Type, Name: e.Name, Counts: e.Counts})
	}
	for i := 0; i < len(events); i += 1_000 {
		if _, err := f.eng.Import(ctx, f.app(), events[i:min(i+1_000, len(events))]); err != nil {
			b.Fatal(err)
		}
	}
	window := affinity.Window{Now: f.clock}
	scorer, stored := affinity.NewScorer(affinity.Compile(st), window), []byte(nil)
	benchCPU(b, "score", func(int) error {
		for _, own := range byUser {
			scorer.Reset(window)
			for _, e := range own {
				scorer.AddEvent(e)
			}
			stored = scorer.AppendProfile(stored[:0], 1)
		}
		return nil
	})
	benchCPU(b, "recompute", func(int) error {
		_, err := f.eng.Recompute(ctx, f.app(), store.Range{}, profile.RecomputeOptions{}, func(profile.Progress) error { return nil })
		return err
	})
	log := f.store.Events.Log(appID, f.app().Log)
	benchCPU(b, "write", func(int) error { return log.Append(ctx, events[:min(len(events), 1_000)]) })
	benchCPU(b, "message", func(i int) error {
		_, err := f.eng.Apply(ctx, f.app(), events[i%len(events):i%len(events)+1])
		return err
	})
}

// benchCPU measures the time of the processor, which depends less on what else the
// machine does.
func benchCPU(b *testing.B, name string, do func(i int) error) {
	b.Run(name, func(b *testing.B) {
		began := cpu.Time()
		for i := 0; b.Loop(); i++ {
			if err := do(i); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpu.Time()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}
