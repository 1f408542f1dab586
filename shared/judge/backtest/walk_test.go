package backtest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// hourly has events that are thousands of half-lives old.
func hourly(t *testing.T) strategy.Strategy {
	t.Helper()
	hour, err := strategy.ParseHalfLife("1h")
	must.Succeed(t, err)
	s := viewed
	s.HalfLives = []strategy.HalfLife{hour}
	return s
}

// A case that continues the walk of another has exactly the scores of one that
// begins with the first event of the user.
func TestCasesShareTheirPast(t *testing.T) {
	for name, s := range map[string]strategy.Strategy{"no half-life": viewed, "hours": hourly(t)} {
		c := rolling(t, shop(3, 600, 60), s)
		compiled := c.compile(s)
		shared, scores, want := compiled.ranker(), make([]float64, 60), make([]float64, 60)
		worker := newWorker(c, compiled.ranker())
		for i := range c.cases {
			if i%3 == 1 {
				continue // of another goroutine
			}
			worker.findCandidates(&c.cases[i])
			shared.rank(&c.cases[i], worker.candidates, scores)
			compiled.ranker().rank(&c.cases[i], worker.candidates, want)
			for _, o := range worker.candidates {
				if scores[o] != want[o] {
					t.Fatalf("%s: case %d, object %d: score %v, want %v", name, i, o, scores[o], want[o])
				}
			}
		}
	}
}

// The sums of a walk are those of each event by its age.
func TestWalkAddsEachEvent(t *testing.T) {
	for name, s := range map[string]strategy.Strategy{"no half-life": viewed, "hours": hourly(t)} {
		c := rolling(t, shop(3, 600, 60), s)
		p := c.compile(s)
		walk, got := newWalk(p), make([]sums, len(p.terms))
		for i := range c.cases {
			in, want := &c.cases[i], make([]float64, len(p.terms))
			for _, e := range c.log.events[in.pastStart:in.pastEnd] {
				points := p.points[e.kind]
				if p.halfLife > 0 {
					points *= math.Exp2(-float64(in.time-e.time) / p.halfLife)
				}
				p.addEvent(&e, func(term int32) { want[term] += points * p.terms[term].weight })
			}
			walk.to(in)
			walk.profile(in.time, got)
			for term := range want {
				if math.Abs(got[term].profile-want[term]) > 1e-12*want[term]+1e-300 {
					t.Fatalf("%s: case %d, term %d: %v, want %v", name, i, term, got[term].profile, want[term])
				}
			}
			for newer := range walk.session() { // all events of the shop score
				if got := walk.newest(newer); got != in.pastEnd-1-int32(newer) {
					t.Fatalf("%s: case %d: event %d of the session is %d", name, i, newer, got)
				}
			}
			clear(got)
		}
	}
}

func rolling(t testing.TB, l *Log, s strategy.Strategy) *Cases {
	t.Helper()
	c, err := l.Cases(context.Background(), s, Options{Protocol: Rolling})
	must.Succeed(t, err)
	return c
}

// Work that is cancelled ends with the number that it is at, and says so.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := []int{}
	err := spread(ctx, stride, func() func(int) { // one goroutine
		return func(i int) {
			if done = append(done, i); i == 2 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) || !slices.Equal(done, []int{0, 1, 2}) {
		t.Errorf("did %v, error %v", done, err)
	}
	c := rolling(t, shop(3, 100, 10), viewed)
	for name, judge := range map[string]func() (*Result, error){
		api.RandomOrder:       func() (*Result, error) { return c.Random(ctx) },
		api.BestSellers:       func() (*Result, error) { return c.Popularity(ctx) },
		api.PairsOrder:        func() (*Result, error) { return c.Pairs(ctx) },
		api.RecentBestSellers: func() (*Result, error) { return c.recent(ctx, recencies[1]) },
		"a strategy":          func() (*Result, error) { return c.Judge(ctx, viewed) },
	} {
		if r, err := judge(); r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: result %v, error %v", name, r, err)
		}
	}
	// Resamples, too; the next use begins again.
	r := judged(c.Popularity(t.Context()))
	if err := r.Resample(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("resampling: error %v", err)
	}
	again := judged(c.Popularity(t.Context()))
	must.Succeed(t, again.Resample(t.Context()))
	low, high := r.Interval()
	if l, h := again.Interval(); l != low || h != high || high == 0 {
		t.Errorf("after a cancelled one: %g to %g, want %g to %g", low, high, l, h)
	}
}

// BenchmarkRobot judges the cases of two users with hundreds of thousands of
// instants.
func BenchmarkRobot(b *testing.B) {
	c := rolling(b, shop(2, 1_000_000, 5_000), viewed)
	b.ReportMetric(float64(c.Len()), "cases")
	for b.Loop() {
		judged(c.Judge(b.Context(), viewed))
	}
}
