package affinity_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// score computes a profile with the scorer, given whole events.
func score(events []affinity.Event, s strategy.Strategy, w affinity.Window) affinity.Profile {
	sc := affinity.NewScorer(affinity.Compile(s), w)
	for _, e := range events {
		sc.AddEvent(e)
	}
	return sc.Profile()
}

// scoreSections does the same the way a reader of cells does: facet by facet,
// values as bytes that are used again.
func scoreSections(events []affinity.Event, s strategy.Strategy, w affinity.Window) affinity.Profile {
	sc := affinity.NewScorer(affinity.Compile(s), w)
	var buffer []byte
	for _, e := range events {
		sc.Begin(e.Time)
		for _, c := range e.Counts {
			buffer = append(buffer[:0], c.Value...)
			sc.Add(sc.Section(string(e.Type), e.Name, c.Facet), buffer, c.N)
		}
	}
	return sc.Profile()
}

func TestScorerEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		want := affinity.Reference(events, s, w)
		if fault := differ(score(events, s, w), want, 1e-9); fault != "" {
			t.Fatalf("whole events: %s", fault)
		}
		if fault := differ(scoreSections(events, s, w), want, 1e-9); fault != "" {
			t.Fatalf("by section: %s", fault)
		}
	})
}

func TestEventOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		shuffled := rapid.Permutation(events).Draw(t, "shuffled")
		if fault := differ(score(shuffled, s, w), score(events, s, w), 1e-12); fault != "" {
			t.Fatal(fault)
		}
	})
}

func TestDeletedEventsDoNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		left := slices.DeleteFunc(slices.Clone(events), func(e affinity.Event) bool {
			return w.DeletedUntil != 0 && e.Time <= w.DeletedUntil
		})
		never := w
		never.DeletedUntil = 0
		if fault := differ(score(events, s, w), score(left, s, never), 1e-12); fault != "" {
			t.Fatal(fault)
		}
	})
}

func TestAliasEqualsRenaming(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		renamed := make([]affinity.Event, len(events))
		for i, e := range events {
			renamed[i] = e
			renamed[i].Counts = slices.Clone(e.Counts)
			for j, c := range e.Counts {
				if to, ok := s.Aliases[c.Facet][c.Value]; ok {
					renamed[i].Counts[j].Value = to
				}
			}
		}
		plain := s
		plain.Aliases = nil
		if fault := differ(score(events, s, w), score(renamed, plain, w), 1e-12); fault != "" {
			t.Fatal(fault)
		}
	})
}

func TestDecayComposes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		p := score(drawEvents(t, w), s, w)
		times := rapid.SliceOfN(rapid.Int64Range(w.Now-dayMS, w.Now+400*dayMS), 2, 2).Draw(t, "times")
		latest := max(times[0], times[1])
		if fault := differ(p.At(times[0]).At(times[1]), p.At(latest), 1e-12); fault != "" {
			t.Fatal(fault)
		}
	})
}

func TestStoredProfileIsValidUntil(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		p := score(events, s, w)
		if p.Until <= w.Now {
			t.Fatalf("computed at %d, but valid only until %d", w.Now, p.Until)
		}
		last := min(p.Until-1, w.Now+500*dayMS)
		later := w
		later.Now = rapid.OneOf(rapid.Int64Range(w.Now, last), rapid.Just(last)).Draw(t, "later")
		if fault := differ(p.At(later.Now), affinity.Reference(events, s, later), 1e-9); fault != "" {
			t.Fatalf("decayed to %d: %s", later.Now, fault)
		}
	})
}

// TestUntilIsExact holds Until to the events themselves: up to the ms before it
// the same ones count, and at it others.
func TestUntilIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		p := score(events, s, w)
		first := counting(events, s, w)
		if p.Until == math.MaxInt64 {
			w.Now += 10_000 * dayMS
			if later := counting(events, s, w); later != first {
				t.Fatalf("valid forever, but %s becomes %s", first, later)
			}
			return
		}
		w.Now = p.Until - 1
		if before := counting(events, s, w); before != first {
			t.Fatalf("valid until %d, but before that %s becomes %s", p.Until, first, before)
		}
		w.Now = p.Until
		if at := counting(events, s, w); at == first {
			t.Fatalf("invalid from %d on, but %s is still right then", p.Until, first)
		}
	})
}

// A reader takes nothing from further ahead of its clock than it may. What it computes is a
// function of the events and its clock, and stays right until the instant that it says.
func TestReaderTakesNothingFromFarAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		events := drawEvents(t, w)
		w.Ahead = rapid.SampledFrom([]int64{1, 2, 1000, dayMS / 2, 2 * dayMS}).Draw(t, "ahead")
		p, asOf := read(events, s, w, w.Now)
		newest := w.Now
		for _, e := range events {
			if e.Time <= w.Now+w.Ahead && e.Time > w.DeletedUntil {
				newest = max(newest, e.Time)
			}
		}
		if asOf.Now != newest {
			t.Fatalf("as of %d by the clock %d, want %d", asOf.Now, w.Now, newest)
		}
		if fault := differ(p, affinity.Reference(events, s, asOf), 1e-12); fault != "" {
			t.Fatalf("as of %d by the clock %d: %s", asOf.Now, w.Now, fault)
		}
		clock := w.Now + rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 100*dayMS)).Draw(t, "later")
		later, at := read(events, s, w, clock)
		served := p.Until == math.MaxInt64 || max(clock, p.Anchor) < p.Until
		if !served {
			return
		}
		if at.Now != max(clock, p.Anchor) {
			t.Fatalf("served as of %d by the clock %d, computed as of %d", max(clock, p.Anchor), clock, at.Now)
		}
		later.Until = p.Until
		if fault := differ(p.At(at.Now), later, 1e-9); fault != "" {
			t.Fatalf("served by the clock %d: %s", clock, fault)
		}
	})
}

// read computes a profile as a reader with a clock does, and returns it with its window.
func read(events []affinity.Event, s strategy.Strategy, w affinity.Window, clock int64) (affinity.Profile, affinity.Window) {
	w.Now, w.Clock = clock, clock
	sc := affinity.NewScorer(affinity.Compile(s), w)
	for _, e := range events {
		sc.AddEvent(e)
	}
	w.Now = max(clock, sc.Ahead())
	return score(events, s, w), w
}

// counting says which events score in a window, and which is the last of all in
// it.
func counting(events []affinity.Event, s strategy.Strategy, w affinity.Window) string {
	var scored []int
	known, last := false, int64(0)
	for i, e := range events {
		leaves := int64(math.MaxInt64)
		if w.RetentionDays > 0 {
			leaves = e.Time + int64(w.RetentionDays)*dayMS
		}
		if e.Time > w.Now || w.Now >= leaves || w.DeletedUntil != 0 && e.Time <= w.DeletedUntil {
			continue
		}
		if !known || e.Time > last {
			known, last = true, e.Time
		}
		if slices.ContainsFunc(e.Counts, func(c affinity.Count) bool {
			return c.N > 0 && s.EventScore(e.Type, e.Name)*s.FacetScore(c.Facet) > 0
		}) {
			scored = append(scored, i)
		}
	}
	return fmt.Sprintf("events %v, last at %d (%v)", scored, last, known)
}

func TestScaledIsProportional(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		p := score(drawEvents(t, w), s, w)
		scaled := p.Scaled(s)
		if scaled == nil {
			t.Fatal("the map is nil")
		}
		top, listed := 0, 0
		for facet, byValue := range scaled {
			if s.FacetScore(facet) == 0 || len(byValue) == 0 {
				t.Fatalf("facet %s of weight %d has %v", facet, s.FacetScore(facet), byValue)
			}
			listed += len(byValue)
			for value, n := range byValue {
				if n < 1 || n > 20 {
					t.Fatalf("%s:%s is %d", facet, value, n)
				}
				top = max(top, n)
			}
		}
		visible := 0
		for _, a := range p.Affinities {
			if a.Scores[0] > vanishing {
				visible++
			}
			for _, b := range p.Affinities {
				x, y := a.Scores[0]/float64(s.FacetScore(a.Facet)), b.Scores[0]/float64(s.FacetScore(b.Facet))
				if x > y && scaled[a.Facet][a.Value] < scaled[b.Facet][b.Value] {
					t.Fatalf("%s:%s should not be below %s:%s: %v", a.Facet, a.Value, b.Facet, b.Value, scaled)
				}
			}
		}
		if listed < visible || visible > 0 && top != 20 {
			t.Fatalf("%d of %d are listed, the highest at %d", listed, visible, top)
		}
		other := s
		other.FacetsScoring = nil
		if left := p.Scaled(other); left == nil || len(left) != 0 {
			t.Fatalf("a strategy without facets leaves %v", slices.Collect(maps.Keys(left)))
		}
	})
}

// TestRoundingOfManyEvents adds up as many events as rounding could be felt with, upwards
// and downwards.
func TestRoundingOfManyEvents(t *testing.T) {
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "a", EventType: types[0], Score: 7}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f0", Score: 3}},
		HalfLives:     strategy.InDays(1, 30),
	}
	w := affinity.Window{Now: now, RetentionDays: window}
	events := make([]affinity.Event, 200_000)
	for i := range events {
		at := now - int64(i)*(window*dayMS/int64(len(events)))
		events[i] = affinity.Event{Time: at, Type: types[0], Name: "a", Counts: []affinity.Count{{Facet: "f0", Value: "v0", N: 1}}}
	}
	newestFirst := affinity.Reference(events, s, w)
	slices.Reverse(events)
	if fault := differ(score(events, s, w), newestFirst, 1e-11); fault != "" {
		t.Error(fault)
	}
}

func TestKnownValuesDoNotAllocate(t *testing.T) {
	s, events := benchStrategy(7, 30), benchEvents()
	s.Aliases = map[string]map[string]string{"facet1": {events[0].Counts[1].Value: "another value"}}
	sc := affinity.NewScorer(affinity.Compile(s), affinity.Window{Now: now, RetentionDays: window})
	for _, e := range events {
		sc.AddEvent(e)
	}
	value := []byte(events[0].Counts[1].Value)
	if n := testing.AllocsPerRun(100, func() {
		sc.AddEvent(events[0])
		sc.Begin(now)
		sc.Add(sc.Section("view", "Product viewed", "facet1"), value, 1)
	}); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}
