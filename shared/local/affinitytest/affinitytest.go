// Package affinitytest draws random strategies, windows and times for property
// tests of packages that score events, and plays their scenarios. It keeps no data.
package affinitytest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// DayMS is a day in ms, and Now the instant around which windows lie.
const (
	DayMS = int64(24 * 60 * 60 * 1000)
	Now   = int64(1_790_000_000_000) // in 2026, in ms since the epoch
)

// Few names and values, so that random events and strategies meet: event names a
// and b may score, c never does; facets f0 to f3 may score, f4 never does; values
// v0 to v2 may be aliases of v3 and of "merged", which no event carries; strategies
// ignore N/A unless they say what they ignore.
var (
	Types      = []event.Type{event.View, event.Click, event.Conversion}
	EventNames = []string{"a", "b", "c"}
	Facets     = []string{"f0", "f1", "f2", "f3", "f4"}
	Values     = []string{"v0", "v1", "v2", "v3", "v4", "N/A"}
)

// DrawStrategy draws a valid strategy.
func DrawStrategy(t *rapid.T) strategy.Strategy {
	score := rapid.OneOf(rapid.Just(0), rapid.IntRange(1, strategy.MaxScore))
	var s strategy.Strategy
	for _, typ := range Types {
		for _, name := range EventNames[:2] {
			if rapid.Bool().Draw(t, "named event") {
				s.EventsScoring = append(s.EventsScoring,
					strategy.EventScore{EventName: name, EventType: typ, Score: score.Draw(t, "points")})
			}
		}
	}
	for _, facet := range Facets[:4] {
		if rapid.Bool().Draw(t, "named facet") {
			s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: score.Draw(t, "weight")})
		}
	}
	s.HalfLives = DrawHalfLives(t, 3)
	s.Aliases = map[string]map[string]string{}
	for _, facet := range Facets {
		to := rapid.SampledFrom([]string{"v3", "merged"})
		s.Aliases[facet] = rapid.MapOfN(rapid.SampledFrom(Values[:3]), to, 0, 3).Draw(t, "aliases")
	}
	s.IgnoredValues = rapid.SampledFrom([][]string{nil, nil, {}, {"V1"}, {"v3", "V4"}, {"Merged", "n/a", "other"}}).
		Draw(t, "ignored")
	value := rapid.SampledFrom(slices.Concat(Values, []string{"merged", "V0"}))
	allowed := rapid.Map(rapid.SliceOfN(value, 1, 4), func(values []string) strategy.ValueSet {
		return strategy.SetOf(values...)
	})
	s.AllowedValues = rapid.MapOfN(rapid.SampledFrom(Facets), allowed, 0, 2).Draw(t, "allowed")
	if err := s.Validate(); err != nil {
		t.Fatalf("the generator made an invalid strategy: %v", err)
	}
	return s
}

// DrawBounds draws bounds that few values reach.
func DrawBounds(t *rapid.T) affinity.Bounds {
	few := rapid.SampledFrom([]int{0, 1, 2, 3, 10})
	return affinity.Bounds{
		FacetValues: few.Draw(t, "facet values"), Values: few.Draw(t, "all values"),
		NameBytes: rapid.SampledFrom([]int{0, 0, 1, 7, 100}).Draw(t, "name bytes"),
	}
}

// DrawHalfLives draws at most this many different half-lives in every form that
// the formula takes: days, and times of minutes to years.
func DrawHalfLives(t *rapid.T, most int) []strategy.HalfLife {
	days := rapid.Map(rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, strategy.MaxHalfLifeDays)), strategy.Days)
	text := rapid.Custom(func(t *rapid.T) strategy.HalfLife {
		unit := rapid.SampledFrom([]string{"m", "h", "d"}).Draw(t, "unit")
		h, err := strategy.ParseHalfLife(strconv.Itoa(rapid.IntRange(1, strategy.MaxHalfLifeDays).Draw(t, "number")) + unit)
		if err != nil {
			t.Fatalf("the generator made an invalid half-life: %v", err)
		}
		return h
	})
	return rapid.SliceOfNDistinct(rapid.OneOf(days, text), 0, most, strategy.HalfLife.Millis).Draw(t, "half-lives")
}

// DrawWindow draws a window around Now.
func DrawWindow(t *rapid.T) affinity.Window {
	w := affinity.Window{
		Now:           Now + rapid.Int64Range(-DayMS, DayMS).Draw(t, "now"),
		RetentionDays: rapid.SampledFrom([]int{0, 1, 30, 90, 4_000}).Draw(t, "retention"),
	}
	if rapid.Bool().Draw(t, "deleted") {
		w.DeletedUntil = DrawTime(t, w)
		w.ReceivedUntil = w.DeletedUntil + rapid.Int64Range(0, 2).Draw(t, "slack")
	}
	if rapid.Bool().Draw(t, "marked") {
		w.Marks = rapid.Int64Range(1, 1000).Draw(t, "marks")
	}
	return w
}

// DrawTime draws any time, and often one next to the start or the end of the
// window.
func DrawTime(t *rapid.T, w affinity.Window) int64 {
	edges := []int64{w.Now, w.From()}
	if w.RetentionDays == 0 && w.DeletedUntil == 0 {
		edges[1] = 0
	}
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom(edges).Draw(t, "edge") + rapid.Int64Range(-2, 2).Draw(t, "off by")
		}),
		rapid.Int64Range(w.Now-100*DayMS, w.Now+DayMS),
		rapid.Int64Range(w.Now-5_000*DayMS, w.Now+DayMS),
	).Draw(t, "time")
}

// DrawCounts draws at most five counts. n draws how often their events have a value.
func DrawCounts(t *rapid.T, n *rapid.Generator[int]) (counts []affinity.Count) {
	for range rapid.IntRange(0, 5).Draw(t, "counts") {
		counts = append(counts, affinity.Count{
			Facet: rapid.SampledFrom(Facets).Draw(t, "facet"),
			Value: rapid.SampledFrom(Values).Draw(t, "value"),
			N:     n.Draw(t, "n"),
		})
	}
	return counts
}

// Scenarios plays the files in testdata/scenarios. begin returns what plays the commands of
// one file. An error of a command ends the test.
func Scenarios(t *testing.T, begin func() func(*testing.T, *datadriven.TestData) (string, error)) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		play := begin()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := play(t, d)
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			return out
		})
	})
}

// FormatTime shows a time of a scenario, in ms.
func FormatTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// DetectsDamage checks that stored is readable, and that it is not once it is cut at any byte, or
// once any bit is flipped.
func DetectsDamage(t *testing.T, stored []byte, readable func([]byte) bool) {
	t.Helper()
	if !readable(stored) {
		t.Fatal("the test begins with damaged bytes")
	}
	for n := range stored {
		if readable(stored[:n]) {
			t.Errorf("cut to %d of %d bytes it can still be read", n, len(stored))
		}
		for bit := range 8 {
			damaged := slices.Clone(stored)
			damaged[n] ^= 1 << bit
			if readable(damaged) {
				t.Errorf("with bit %d of byte %d flipped it can still be read", bit, n)
			}
		}
	}
}
