package history_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/history"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// vanishing is where float64 begins to lose digits: scores below it are as good
// as zero, and may be listed or not.
const vanishing = 1e-290

// differ says in what two profiles differ by more than a relative error of
// 1e-9, "" if in nothing.
func differ(got, want affinity.Profile) string {
	facts := func(p affinity.Profile) string {
		return fmt.Sprintf("anchor %d, known %v, last %d, until %d, half-lives %v, retention %d",
			p.Anchor, p.Known, p.LastEventAt, p.Until, p.HalfLives, p.RetentionDays)
	}
	if a, b := facts(got), facts(want); a != b {
		return fmt.Sprintf("got  %s\nwant %s", a, b)
	}
	a, b := scores(got), scores(want)
	for name := range a {
		if _, ok := b[name]; !ok {
			b[name] = make([]float64, len(a[name]))
		}
	}
	for name, want := range b {
		got := a[name]
		if got == nil {
			got = make([]float64, len(want))
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9*max(got[i], want[i])+vanishing {
				return fmt.Sprintf("%s: got %v, want %v", name, got, want)
			}
		}
	}
	return ""
}

func scores(p affinity.Profile) map[string][]float64 {
	m := make(map[string][]float64, len(p.Affinities))
	for _, a := range p.Affinities {
		m[a.Facet+":"+a.Value] = a.Scores
	}
	return m
}

// TestBlocksAndLogEqualReference scores users one after the other, with the same
// reader and scorer, from their events partly in blocks and partly loose.
func TestBlocksAndLogEqualReference(t *testing.T) {
	all := testLayouts()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStrategy(t)
		c := affinity.Compile(s)
		r, sc := history.NewReader(c, commonShelf), affinity.NewScorer(c, affinity.Window{})
		for range rapid.IntRange(1, 3).Draw(t, "users") {
			w := drawWindow(t)
			events := drawLog(t, w)
			sc.Reset(w)
			loose, n := affinity.NewScorer(c, w), 0
			for rest := events; len(rest) > 0; {
				part := rest[:rapid.IntRange(1, len(rest)).Draw(t, "part")]
				rest = rest[len(part):]
				where := rapid.IntRange(0, 2).Draw(t, "in a block, loose, or loose elsewhere")
				if where == 0 {
					for _, block := range pack(rapid.SampledFrom(all).Draw(t, "layout").Builder, part) {
						m, err := r.Score(block, sc)
						if err != nil {
							t.Fatal(err)
						}
						n += m
					}
					continue
				}
				n += len(part)
				for _, e := range part {
					if where == 1 {
						sc.AddEvent(e)
					} else {
						loose.AddEvent(e)
					}
				}
			}
			sc.Merge(loose)
			if fault := differ(sc.Profile(), affinity.Reference(events, s, w)); fault != "" || n != len(events) {
				t.Fatalf("%d of %d events: %s", n, len(events), fault)
			}
		}
	})
}

// TestScoreBetween scores the parts of blocks that lie between two times.
func TestScoreBetween(t *testing.T) {
	all := testLayouts()
	rapid.Check(t, func(t *rapid.T) {
		c, w := affinity.Compile(drawStrategy(t)), drawWindow(t)
		events := drawLog(t, w)
		from, to := drawTime(t, w), drawTime(t, w)
		got, want := affinity.NewScorer(c, w), affinity.NewScorer(c, w)
		r := history.NewReader(c, commonShelf)
		for _, block := range pack(rapid.SampledFrom(all).Draw(t, "layout").Builder, events) {
			if _, err := r.ScoreBetween(block, got, from, to); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range events {
			if from <= e.Time && e.Time < to {
				want.AddEvent(e)
			}
		}
		if diff := differ(got.Profile(), want.Profile()); diff != "" {
			t.Fatalf("%d events, from %d to %d: %s", len(events), from, to, diff)
		}
	})
}

// TestWideBlocksEqualReference does the same with blocks that have many kinds,
// facets and values, all at once.
func TestWideBlocksEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawWide(t, 250)
		s := sampleStrategy()
		for i := range s.EventsScoring {
			s.EventsScoring[i].EventName = fmt.Sprint("name", i)
		}
		for i := range s.FacetsScoring {
			s.FacetsScoring[i].FacetName = fmt.Sprint("facet", i)
		}
		w := affinity.Window{Now: now + 400*dayMS}
		c := affinity.Compile(s)
		r, sc := history.NewReader(c, commonShelf), affinity.NewScorer(c, w)
		for _, block := range pack(rapid.SampledFrom(testLayouts()).Draw(t, "layout").Builder, events) {
			if _, err := r.Score(block, sc); err != nil {
				t.Fatal(err)
			}
		}
		if fault := differ(sc.Profile(), affinity.Reference(events, s, w)); fault != "" {
			t.Fatal(fault)
		}
	})
}

// TestOldestScoredEvent has the oldest event that scores last in the
// block's order of values.
func TestOldestScoredEvent(t *testing.T) {
	s, w := sampleStrategy(), affinity.Window{Now: now, RetentionDays: 30}
	count := func(facet, value string) []affinity.Count {
		return []affinity.Count{{Facet: facet, Value: value, N: 1}}
	}
	events := []affinity.Event{
		{Time: now - 40*dayMS, Type: types[0], Name: "a", Counts: count("f0", "v0")}, // too old
		{Time: now - 25*dayMS, Type: types[0], Name: "c", Counts: count("f0", "v0")}, // no points
		{Time: now - 20*dayMS, Type: types[0], Name: "a", Counts: count("x", "v0")},  // no such facet
		{Time: now - 15*dayMS, Type: types[0], Name: "a", Counts: count("f3", "v9")},
		{Time: now - 10*dayMS, Type: types[0], Name: "a", Counts: count("f0", "v0")},
	}
	for _, halfLives := range [][]int{nil, {1}, {1, 2}} {
		for _, l := range testLayouts() {
			s.HalfLives = strategy.InDays(halfLives...)
			c := affinity.Compile(s)
			sc := affinity.NewScorer(c, w)
			for _, block := range pack(l.Builder, events) {
				if _, err := history.NewReader(c, commonShelf).Score(block, sc); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := sc.Profile().Until, now+15*dayMS; got != want {
				t.Errorf("%s, half-lives %v: holds until %d, want %d", l.name, halfLives, got, want)
			}
		}
	}
}

func TestScoreRefusesAnotherStrategy(t *testing.T) {
	c, other := affinity.Compile(sampleStrategy()), affinity.Compile(sampleStrategy())
	if _, err := history.NewReader(c, commonShelf).Score(sampleBlock(history.NewBuilder()), affinity.NewScorer(other, benchWindow)); err == nil {
		t.Error("a block is scored under two strategies")
	}
}

func TestScoringDoesNotAllocate(t *testing.T) {
	logs := crowd(3, 300)
	for _, l := range layouts(logs) {
		blocks, _ := packAll(l.Builder, logs)
		for _, halfLives := range [][]int{nil, {30}, {30, 7}} {
			c := affinity.Compile(benchStrategy(halfLives...))
			r, sc := history.NewReader(c, l.Dictionaries), affinity.NewScorer(c, benchWindow)
			var stored []byte
			all := func() {
				for _, user := range blocks {
					sc.Reset(benchWindow)
					for _, block := range user {
						if _, err := r.Score(block, sc); err != nil {
							t.Fatal(err)
						}
					}
					stored = sc.AppendProfile(stored[:0], 1)
				}
			}
			all()
			if n := testing.AllocsPerRun(5, all); n != 0 {
				t.Errorf("%s, half-lives %v: %v allocations for %d users", l.name, halfLives, n, len(blocks))
			}
		}
	}
}

// TestBlockSize holds blocks to what reading them was planned to cost.
func TestBlockSize(t *testing.T) {
	logs := crowd(10, 500)
	_, size := packAll(history.NewBuilder(), logs)
	if each := size / (len(logs) * 500); each > 65 {
		t.Errorf("%d bytes an event", each)
	}
	if blocks, _ := packAll(history.NewBuilder(), [][]affinity.Event{slices.Repeat([]affinity.Event{{Time: now, Type: "view", Name: "a", Counts: []affinity.Count{{Facet: "f", Value: "v", N: 1}}}}, 1_000)}); len(blocks[0][0]) > 3_050 {
		t.Errorf("1,000 equal events take %d bytes", len(blocks[0][0]))
	}
}
