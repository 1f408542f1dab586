package affinity_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestResetForgetsTheUser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStrategy(t)
		c := affinity.Compile(s)
		sc := affinity.NewScorer(c, affinity.Window{})
		var earlier, copied []affinity.Profile
		for range rapid.IntRange(1, 4).Draw(t, "users") {
			w := drawWindow(t)
			fresh := affinity.NewScorer(c, w)
			sc.Reset(w)
			for _, e := range drawEvents(t, w) {
				fresh.AddEvent(e)
				sc.AddEvent(e)
			}
			p := sc.Profile()
			if diff := cmp.Diff(fresh.Profile(), p); diff != "" {
				t.Fatalf("(-new scorer +reused scorer):\n%s", diff)
			}
			earlier = append(earlier, p)
			q, err := affinity.ParseProfile(p.AppendBinary(nil), 0)
			if err != nil {
				t.Fatal(err)
			}
			copied = append(copied, q)
		}
		for i := range earlier {
			if fault := differ(earlier[i], copied[i], 0); fault != "" {
				t.Fatalf("profile %d has changed: %s", i, fault)
			}
		}
	})
}

func TestMergeEqualsAdding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		c := affinity.Compile(s)
		a, b := affinity.NewScorer(c, w), affinity.NewScorer(c, w)
		events := drawEvents(t, w)
		for _, e := range events {
			if rapid.Bool().Draw(t, "in the other") {
				b.AddEvent(e)
			} else {
				a.AddEvent(e)
			}
		}
		before := b.Profile()
		a.Merge(b)
		if fault := differ(a.Profile(), affinity.Reference(events, s, w), 1e-9); fault != "" {
			t.Fatal(fault)
		}
		if diff := cmp.Diff(before, b.Profile()); diff != "" {
			t.Fatalf("Merge changed its argument:\n%s", diff)
		}
	})
}

func TestAppendProfileEqualsAppendBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		sc := affinity.NewScorer(affinity.Compile(s), w)
		for range 2 {
			for _, e := range append(drawEvents(t, w), drawCrowd(t, s, w)...) {
				sc.AddEvent(e)
			}
			p := sc.Profile()
			p.StrategyVersion = rapid.Int64().Draw(t, "version")
			want := p.AppendBinary([]byte("kept"))
			if got := sc.AppendProfile([]byte("kept"), p.StrategyVersion); !bytes.Equal(got, want) {
				t.Fatalf("got  %x\nwant %x", got, want)
			}
			sc.Reset(w)
		}
	})
}

// drawCrowd draws one event of many values, whose scores are often equal, or
// all in one decade, or far apart.
func drawCrowd(t *rapid.T, s strategy.Strategy, w affinity.Window) []affinity.Event {
	most := rapid.SampledFrom([]int{1, 3, 100, math.MaxInt}).Draw(t, "most")
	var events []affinity.Event
	for _, at := range []int64{w.Now, w.Now - 20*dayMS} {
		e := affinity.Event{Time: at, Type: types[0], Name: "a"}
		for i := range rapid.IntRange(0, 200).Draw(t, "values") {
			n := 1 + int(math.Pow(float64(most), float64(i*37%101)/101))
			e.Counts = append(e.Counts, affinity.Count{Facet: facets[i*7%4], Value: fmt.Sprint("v", i*71%200), N: n})
		}
		events = append(events, e)
	}
	return events
}

// TestBucketSortOrder gives profiles so many affinities that they are sorted the
// fast way.
func TestBucketSortOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strategy.Strategy{EventsScoring: []strategy.EventScore{{EventName: "a", EventType: types[0], Score: 7}}}
		for i, facet := range facets {
			s.FacetsScoring = append(s.FacetsScoring, strategy.FacetScore{FacetName: facet, Score: 1 + i%2})
		}
		s.HalfLives = rapid.SampledFrom([][]strategy.HalfLife{nil, strategy.InDays(1), strategy.InDays(1, 3650), {parseHalfLife(t, "45m"), strategy.Days(30)}}).Draw(t, "half-lives")
		w := affinity.Window{Now: now}
		events := drawCrowd(t, s, w)
		// So old that nothing, or next to nothing, is left under the first
		// half-life.
		for _, days := range []int64{1000, 1070, 1090, 2000} {
			events = append(events, affinity.Event{Time: now - days*dayMS, Type: types[0], Name: "a",
				Counts: []affinity.Count{{Facet: "f0", Value: fmt.Sprint("old ", days), N: 1}}})
		}
		if fault := differ(score(events, s, w), affinity.Reference(events, s, w), 1e-9); fault != "" {
			t.Fatal(fault)
		}
	})
}

// TestRunsEqualReference hands over events by value in place of values by event.
func TestRunsEqualReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := drawStrategy(t), drawWindow(t)
		c := affinity.Compile(s)
		sc := affinity.NewScorer(c, w)
		events := drawEvents(t, w)
		sortEvents(events)
		times := make([]int64, len(events))
		points := make([]float64, len(events))
		for i, e := range events {
			times[i], points[i] = e.Time, c.Points([]byte(e.Type), []byte(e.Name))
		}
		lo, hi := sc.BeginRun(times)
		weights := make([][]float64, c.Scores())
		for k := range weights {
			weights[k] = make([]float64, len(events))
			sc.Weigh(k, weights[k][lo:hi], points[lo:hi], times[lo:hi])
		}
		for i := lo; i < hi; i++ {
			for _, count := range events[i].Counts {
				facet, ok := c.Facet([]byte(count.Facet))
				if !ok || count.N <= 0 || points[i] == 0 {
					continue
				}
				totals := make([]float64, len(weights))
				for k := range totals {
					totals[k] = weights[k][i] * float64(count.N)
				}
				value := []byte(count.Value)
				sc.AddTotals(facet, value, 0, len(value), totals)
				sc.Scored(times[i])
			}
		}
		if fault := differ(sc.Profile(), affinity.Reference(events, s, w), 1e-9); fault != "" {
			t.Fatal(fault)
		}
	})
}

func TestSharedVocabularyDoesNotAllocate(t *testing.T) {
	events := benchEvents()
	w := affinity.Window{Now: now, RetentionDays: window}
	sc := affinity.NewScorer(affinity.Compile(benchStrategy(30)), w)
	var stored []byte
	user := func() {
		sc.Reset(w)
		for _, e := range events {
			sc.AddEvent(e)
		}
		stored = sc.AppendProfile(stored[:0], 1)
	}
	user()
	if n := testing.AllocsPerRun(5, user); n != 0 {
		t.Errorf("%v allocations per user", n)
	}
}

// TestUsersAreIndependent scores users who share values, kinds and facets one after
// the other, and merges two of them.
func TestUsersAreIndependent(t *testing.T) {
	all := benchEvents()
	s := benchStrategy(7, 30)
	s.Aliases = map[string]map[string]string{"facet1": {"value number 1": "value number 2", "value number 3": "merged"}}
	c, w := affinity.Compile(s), affinity.Window{Now: now, RetentionDays: 60}
	sc, other := affinity.NewScorer(c, w), affinity.NewScorer(c, w)
	for user := range 8 {
		w.DeletedUntil = int64(user%2) * (now - 50*dayMS)
		events := all[user*100 : user*100+300]
		sc.Reset(w)
		other.Reset(w)
		for i, e := range events {
			[]*affinity.Scorer{sc, other}[i%(1+user%3)%2].AddEvent(e)
		}
		sc.Merge(other)
		if fault := differ(sc.Profile(), affinity.Reference(events, s, w), 1e-12); fault != "" {
			t.Errorf("user %d: %s", user, fault)
		}
	}
}
