package affinity_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const (
	now    = affinitytest.Now
	dayMS  = affinitytest.DayMS
	window = 90
)

// benchStrategy scores three kinds of events and three of the eight facets of
// benchEvents.
func benchStrategy(halfLives ...int) strategy.Strategy {
	return strategy.Strategy{
		EventsScoring: []strategy.EventScore{
			{EventName: "Product viewed", EventType: event.View, Score: 10},
			{EventName: "Product clicked", EventType: event.Click, Score: 20},
			{EventName: "Order placed", EventType: event.Conversion, Score: 100},
		},
		FacetsScoring: []strategy.FacetScore{{FacetName: "facet1", Score: 100}, {FacetName: "facet4", Score: 50}, {FacetName: "facet6", Score: 20}},
		HalfLives:     strategy.InDays(halfLives...),
	}
}

// benchEvents are a user's 1,000 events, each with 12 counts over 8 facets of
// 150 values: some 434 of them score.
func benchEvents() []affinity.Event {
	r := rand.New(rand.NewPCG(1, 2))
	s := benchStrategy()
	events := make([]affinity.Event, 1_000)
	for i := range events {
		kind := s.EventsScoring[r.IntN(len(s.EventsScoring))]
		events[i] = affinity.Event{Time: now - r.Int64N(window*dayMS), Type: kind.EventType, Name: kind.EventName}
		for j := range 12 {
			events[i].Counts = append(events[i].Counts, affinity.Count{
				Facet: fmt.Sprintf("facet%d", j%8), Value: fmt.Sprintf("value number %d", r.IntN(150)), N: 1 + r.IntN(3),
			})
		}
	}
	return events
}

func BenchmarkScorer(b *testing.B) {
	events := benchEvents()
	for _, halfLives := range [][]int{nil, {30}, {7, 30, 180}} {
		b.Run(fmt.Sprintf("halfLives=%d", len(halfLives)), func(b *testing.B) {
			sc := affinity.NewScorer(affinity.Compile(benchStrategy(halfLives...)), affinity.Window{Now: now, RetentionDays: window})
			for _, e := range events {
				sc.AddEvent(e)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				sc.AddEvent(events[i])
				if i++; i == len(events) {
					i = 0
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkScorerSections is what a reader of cells does: sections resolved
// before, values as bytes, and only those counts handed over that the strategy
// selects.
func BenchmarkScorerSections(b *testing.B) {
	type add struct {
		section affinity.Section
		value   []byte
		n       int
	}
	for _, halfLives := range [][]int{{30}, {7, 30, 180}} {
		b.Run(fmt.Sprintf("halfLives=%d", len(halfLives)), func(b *testing.B) {
			sc := affinity.NewScorer(affinity.Compile(benchStrategy(halfLives...)), affinity.Window{Now: now, RetentionDays: window})
			events := benchEvents()
			adds := make([][]add, len(events))
			for i, e := range events {
				sc.AddEvent(e)
				for _, c := range e.Counts {
					if sec := sc.Section(string(e.Type), e.Name, c.Facet); sec.OK() {
						adds[i] = append(adds[i], add{sec, []byte(c.Value), c.N})
					}
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				sc.Begin(events[i].Time)
				for _, a := range adds[i] {
					sc.Add(a.section, a.value, a.n)
				}
				if i++; i == len(events) {
					i = 0
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkUser is the whole of one user's computation: 1,000 events into a
// profile, from nothing.
func BenchmarkUser(b *testing.B) {
	events := benchEvents()
	c := affinity.Compile(benchStrategy(30))
	b.ReportAllocs()
	for b.Loop() {
		sc := affinity.NewScorer(c, affinity.Window{Now: now, RetentionDays: window})
		for _, e := range events {
			sc.AddEvent(e)
		}
		sc.Profile()
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
}

func benchProfile(halfLives ...int) affinity.Profile {
	return affinity.Reference(benchEvents(), benchStrategy(halfLives...), affinity.Window{Now: now, RetentionDays: window})
}

func BenchmarkProfile(b *testing.B) {
	sc := affinity.NewScorer(affinity.Compile(benchStrategy(30)), affinity.Window{Now: now, RetentionDays: window})
	for _, e := range benchEvents() {
		sc.AddEvent(e)
	}
	b.ReportAllocs()
	for b.Loop() {
		sc.Profile()
	}
}

// BenchmarkAppendProfile is BenchmarkProfile and BenchmarkAppendBinary in one.
func BenchmarkAppendProfile(b *testing.B) {
	sc := affinity.NewScorer(affinity.Compile(benchStrategy(30)), affinity.Window{Now: now, RetentionDays: window})
	for _, e := range benchEvents() {
		sc.AddEvent(e)
	}
	var stored []byte
	b.ReportAllocs()
	for b.Loop() {
		stored = sc.AppendProfile(stored[:0], 1)
	}
}

func BenchmarkAppendBinary(b *testing.B) {
	p := benchProfile(30)
	var stored []byte
	b.ReportAllocs()
	for b.Loop() {
		stored = p.AppendBinary(stored[:0])
	}
	b.ReportMetric(float64(len(stored)), "B/profile")
	b.ReportMetric(float64(len(p.Affinities)), "affinities")
}

func BenchmarkParseProfile(b *testing.B) {
	for _, halfLives := range [][]int{{30}, {7, 30, 180}} {
		stored := benchProfile(halfLives...).AppendBinary(nil)
		for _, limit := range []int{100, 0} {
			b.Run(fmt.Sprintf("halfLives=%d/limit=%d", len(halfLives), limit), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := affinity.ParseProfile(stored, limit); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkAt(b *testing.B) {
	for _, halfLives := range [][]int{{30}, {7, 30, 180}} {
		p := benchProfile(halfLives...)
		for _, limit := range []int{100, len(p.Affinities)} {
			part := p
			part.Affinities = part.Affinities[:limit]
			b.Run(fmt.Sprintf("halfLives=%d/affinities=%d", len(halfLives), limit), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					part.At(now + dayMS)
				}
			})
		}
	}
}
