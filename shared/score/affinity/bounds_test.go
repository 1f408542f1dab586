package affinity_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/affinitytest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// none are no bounds: all values.
var none = affinity.Bounds{}

// scorerOf adds events to a scorer of a strategy in bounds.
func scorerOf(events []affinity.Event, c *affinity.Compiled, w affinity.Window) *affinity.Scorer {
	sc := affinity.NewScorer(c, w)
	for _, e := range events {
		sc.AddEvent(e)
	}
	return sc
}

// Every way to a bounded profile lists the best of all values: the reference, the
// scorer, passes in little memory, the stored form, and decay.
func TestBoundedEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w, b := drawStrategy(t), drawWindow(t), affinitytest.DrawBounds(t)
		events := append(drawEvents(t, w), drawCrowd(t, s, w)...)
		c, all := affinity.Compile(s).Within(b), none.Reference(events, s, w)
		check := func(what string, got, all affinity.Profile) {
			t.Helper()
			if fault := misjudged(got, all, b); fault != "" {
				t.Fatalf("%s, %+v: %s", what, b, fault)
			}
		}
		check("reference", b.Reference(events, s, w), all)
		sc := scorerOf(events, c, w)
		p := sc.Profile()
		check("scorer", p, all)
		if p.Until != sc.Outline().Until {
			t.Fatalf("the profile is valid until %d, its outline until %d", p.Until, sc.Outline().Until)
		}

		hold := affinity.Hold{Values: rapid.IntRange(1, 300).Draw(t, "held"), Bytes: rapid.SampledFrom([]int{100, 1 << 20}).Draw(t, "bytes")}
		passed, err := affinity.InPasses(c, w, hold, func(sc *affinity.Scorer) error {
			for _, e := range events {
				sc.AddEvent(e)
			}
			return nil
		})
		must.Succeed(t, err)
		check("passes", passed.Profile(), all)

		stored := p.AppendBinary(nil)
		if fast := sc.AppendProfile(nil, 0); !bytes.Equal(fast, stored) {
			t.Fatalf("AppendProfile: got  %x\nwant %x", fast, stored)
		}
		read, err := b.Parse(stored, rapid.IntRange(0, 5).Draw(t, "limit"))
		must.Succeed(t, err)
		later := w
		later.Now = rapid.Int64Range(w.Now, min(p.Until-1, w.Now+2000*dayMS)).Draw(t, "later")
		if q := b.At(read, later.Now); len(q.Affinities) > 0 && q.Affinities[0].Scores[0] > vanishing {
			if fault := apart(q.Affinities[0].Scores[:1], b.Reference(events, s, later).Affinities[0].Scores[:1], 1e-9); fault != "" {
				t.Fatalf("the first of a part: %s", fault)
			}
		}
		if read, err = b.Parse(stored, 0); err != nil {
			t.Fatal(err)
		}
		check("decayed", b.At(read, later.Now), none.Reference(events, s, later))
	})
}

// A profile that older code has stored lists all values, and counts no others. It
// is bounded when it is read.
func TestOlderProfileIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w, b := drawStrategy(t), drawWindow(t), affinitytest.DrawBounds(t)
		w.ReceivedUntil, w.Marks = w.DeletedUntil, 0 // as older code has it
		all := none.Reference(append(drawEvents(t, w), drawCrowd(t, s, w)...), s, w)
		all.Total = len(all.Affinities)
		for _, limit := range []int{0, 1} {
			p, err := b.Parse(all.AppendBinary(nil), limit)
			must.Succeed(t, err)
			if len(p.Affinities) == limit && len(all.Affinities) > limit {
				continue // a part of a list within the bounds
			}
			if fault := misjudged(p, all, b); fault != "" {
				t.Fatalf("%+v: %s", b, fault)
			}
		}
	})
}

// What a bounded profile must not do: bounds do not commute with expiry, merges
// and additions. These are the shortest examples.
func TestBoundedProfilesDoNotAdd(t *testing.T) {
	one := affinity.Bounds{FacetValues: 1}
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "a", EventType: event.View, Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f", Score: 1}},
	}
	w := affinity.Window{Now: now, RetentionDays: 1}
	at := func(time int64, values ...string) affinity.Event {
		e := affinity.Event{Time: time, Type: event.View, Name: "a"}
		for _, v := range values {
			e.Counts = append(e.Counts, affinity.Count{Facet: "f", Value: v, N: 1})
		}
		return e
	}
	list := func(p affinity.Profile) string {
		text := fmt.Sprintf("of %d", p.Total)
		for _, a := range p.Affinities {
			text += fmt.Sprintf(" %s %v", a.Value, a.Scores[0])
		}
		return text
	}
	c := affinity.Compile(s).Within(one)
	x, xyy := at(now, "x"), at(now, "x", "y", "y")
	a, b := scorerOf([]affinity.Event{x}, c, w), scorerOf([]affinity.Event{xyy}, c, w)
	a.Merge(b)
	if got := list(a.Profile()); got != "of 2 x 2" {
		t.Errorf("scorers hold all values, so they merge: got %s", got)
	}
	old := at(now-dayMS/2, "x", "x")
	p := one.Reference([]affinity.Event{old, at(now, "y")}, s, w)
	if got := list(p); got != "of 2 x 2" || p.Until != old.Time+dayMS {
		t.Errorf("got %s until %d, want x until it leaves", got, p.Until)
	}
	// The event of a value that is not listed leaves: other values are listed, or
	// counted, from then on.
	p = one.Reference([]affinity.Event{at(now-dayMS/2, "y"), at(now, "x", "x")}, s, w)
	if got := list(p); got != "of 2 x 2" || p.Until != now+dayMS/2 {
		t.Errorf("got %s until %d, want it to count y until %d", got, p.Until, now+dayMS/2)
	}
}

// Total counts what has decayed to zero, stored or computed.
func TestTotalIgnoresDecay(t *testing.T) {
	s := benchStrategy(1)
	w := affinity.Window{Now: now}
	var events []affinity.Event
	for i := range 500 {
		events = append(events, affinity.Event{Time: now, Type: event.View, Name: "Product viewed",
			Counts: []affinity.Count{{Facet: "facet1", Value: fmt.Sprint(i), N: 1}}})
	}
	stored := score(events, s, w).AppendBinary(nil)
	w.Now += 1_100 * dayMS
	for _, limit := range []int{100, 0} {
		p, err := affinity.ParseProfile(stored, limit)
		must.Succeed(t, err)
		if p = p.At(w.Now); p.Total != 500 || len(p.Affinities) != 0 || p.Truncated() {
			t.Errorf("limit %d: %d of %d, truncated: %v", limit, len(p.Affinities), p.Total, p.Truncated())
		}
	}
	for name, p := range map[string]affinity.Profile{"scorer": score(events, s, w), "reference": affinity.Reference(events, s, w)} {
		if p.Total != 500 || len(p.Affinities) != 0 || p.Truncated() {
			t.Errorf("%s: %d of %d, truncated: %v", name, len(p.Affinities), p.Total, p.Truncated())
		}
	}
}

// The standard bounds, on a user with more values than each of them.
func TestStandardBounds(t *testing.T) {
	s := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "a", EventType: event.View, Score: 1}}, HalfLives: strategy.InDays(1, 30)}
	for i := range 20 {
		s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint("f", i), Score: 1})
	}
	w := affinity.Window{Now: now}
	long := string(slices.Repeat([]byte("long "), 100))
	for name, test := range map[string]struct {
		facets, values int
		suffix         string
		total, listed  int
	}{
		"of a facet":    {1, 1_500, "", 1_500, 1_500}, // half of them best under each half-life
		"of a facet, 2": {1, 3_000, "", 3_000, 2_000},
		"of all":        {20, 1_000, "", 20_000, 10_000},
		"of names":      {4, 1_000, long, 4_000, (1 << 20) / 506},
	} {
		var events []affinity.Event
		for i := range test.values {
			e := affinity.Event{Time: now - dayMS, Type: event.View, Name: "a"}
			for f := range test.facets {
				e.Counts = append(e.Counts, affinity.Count{Facet: fmt.Sprint("f", f), Value: fmt.Sprintf("%04d", i) + test.suffix, N: i + 1})
			}
			if i%2 == 0 { // old, and so often that they lead under the long half-life
				e.Time = now - 30*dayMS
				for f := range e.Counts {
					e.Counts[f].N *= 100_000
				}
			}
			events = append(events, e)
		}
		p := score(events, s, w)
		if p.Total != test.total || len(p.Affinities) != test.listed || p.Truncated() != (test.listed < test.total) {
			t.Errorf("%s: %d of %d, truncated: %v", name, len(p.Affinities), p.Total, p.Truncated())
		}
		if fault := misjudged(p, none.Reference(events, s, w), affinity.StandardBounds()); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
		if p.Until == math.MaxInt64 && test.total > 10_000 {
			t.Errorf("%s: valid forever, but scores fade", name)
		}
	}
}

// A profile that leaves out values is valid until the first score fades, however high the
// scores are.
func TestCutProfileFades(t *testing.T) {
	s := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "a", EventType: event.View, Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "f", Score: 1}},
		HalfLives:     []strategy.HalfLife{strategy.Days(1)},
	}
	w := affinity.Window{Now: now}
	for n, lasts := range map[int]int64{1: 1022, 4: 1024, 1 << 20: 1042} { // halved so often, n is 2^-1022
		e := affinity.Event{Time: now, Type: event.View, Name: "a", Counts: []affinity.Count{
			{Facet: "f", Value: "x", N: n}, {Facet: "f", Value: "y", N: n},
		}}
		p := affinity.Bounds{Values: 1}.Reference([]affinity.Event{e}, s, w)
		if want := now + lasts*dayMS; p.Until != want || p.Total != 2 || len(p.Affinities) != 1 {
			t.Errorf("%d events: %d of %d values, valid until %d, want 1 of 2 until %d", n, len(p.Affinities), p.Total, p.Until, want)
		}
	}
}

// Scorers that share a memory become full instead of taking more, and give back
// what they took.
func TestSharedMemory(t *testing.T) {
	c := affinity.Compile(benchStrategy())
	w := affinity.Window{Now: now}
	events := make([]affinity.Event, 3_000)
	for i := range events {
		events[i] = affinity.Event{Time: now, Type: event.View, Name: "Product viewed",
			Counts: []affinity.Count{{Facet: "facet1", Value: fmt.Sprint("value ", i), N: 1}}}
	}
	m := affinity.NewMemory(affinity.Hold{Values: 7_000, Bytes: 1 << 20}, affinity.Hold{Values: 256, Bytes: 16 << 10})
	fill := func(share *affinity.Share, sc *affinity.Scorer, n int) bool {
		sc.Hold(share)
		for _, e := range events[:n] {
			sc.AddEvent(e)
		}
		return !sc.Full()
	}
	share := m.Share()
	first, second, third := affinity.NewScorer(c, w), affinity.NewScorer(c, w), affinity.NewScorer(c, w)
	if !fill(share, first, 3_000) || fill(share, second, 3_000) || !fill(share, third, 200) {
		t.Fatal("want room for one of two large users, and for a small one")
	}
	if p := first.Profile(); p.Total != 3_000 {
		t.Errorf("total %d, want 3000", p.Total)
	}
	first.Merge(second)
	if !first.Full() {
		t.Error("a scorer that merged a full one has all values")
	}
	first.Reset(w)
	second.Reset(w)
	if !fill(share, second, 3_000) {
		t.Error("what a scorer took and gave back is gone")
	}
	share.Close()
	share = m.Share()
	if !fill(share, affinity.NewScorer(c, w), 3_000) {
		t.Error("what a closed share took is gone")
	}
}

// A user with very many values leaves memory to the others of the process.
func TestLargeUserLeavesMemory(t *testing.T) {
	c := affinity.Compile(benchStrategy())
	w := affinity.Window{Now: now}
	m := affinity.NewMemory(affinity.Hold{Values: 40_000, Bytes: 4 << 20}, affinity.Hold{Values: 256, Bytes: 16 << 10})
	add := func(sc *affinity.Scorer, from, to int) {
		for i := from; i < to && !sc.Full(); i++ {
			sc.AddEvent(affinity.Event{Time: now, Type: event.View, Name: "Product viewed",
				Counts: []affinity.Count{{Facet: "facet1", Value: fmt.Sprint("value ", i), N: 1}}})
		}
	}
	share := m.Share()
	large, other := affinity.NewScorer(c, w), affinity.NewScorer(c, w)
	large.Hold(share)
	other.Hold(m.Share())
	add(large, 0, 19_000)
	add(other, 0, 8_000)
	if large.Full() || other.Full() {
		t.Fatal("want room for half of the memory, and for a third beside it")
	}
	if add(large, 19_000, 40_000); !large.Full() {
		t.Error("one user holds more than it leaves to all others")
	}
	if add(other, 8_000, 19_000); other.Full() {
		t.Error("a full scorer keeps what it took")
	}
}
