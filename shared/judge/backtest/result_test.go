package backtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
)

// Intervals of the bootstrap agree with those of the normal distribution.
func TestIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	worse, better := make([]outcome, 4000), make([]outcome, 4000)
	for i := range worse {
		value := rng.Float64()
		worse[i].ndcg = value
		better[i].ndcg = value + 0.01*rng.Float64()
	}
	a, b := newResult(worse, 0), newResult(better, 0)
	low, high := a.Interval()
	half := 1.96 / math.Sqrt(12*4000) // of the mean of uniform values
	if math.Abs(low-(a.NDCG-half)) > half/5 || math.Abs(high-(a.NDCG+half)) > half/5 {
		t.Errorf("interval %g to %g, want about %g to %g", low, high, a.NDCG-half, a.NDCG+half)
	}
	// A small gain in every case is certain, although the intervals overlap.
	gain := b.Over(a)
	if gain.Low < 0.0045 || gain.High > 0.0055 || math.Abs(gain.Difference-0.005) > 0.0005 {
		t.Errorf("gain %g (%g to %g), want 0.005 within 0.0005", gain.Difference, gain.Low, gain.High)
	}
	if gain.RatioLow <= 1 || gain.Ratio < gain.RatioLow || gain.Ratio > gain.RatioHigh {
		t.Errorf("ratio %g (%g to %g), want more than 1", gain.Ratio, gain.RatioLow, gain.RatioHigh)
	}
}

// Cases of one user are one observation: twenty equal ones of each user say no
// more than one.
func TestUserIsOneObservation(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var single, repeated []outcome
	starts := []int{0}
	for range 100 {
		o := outcome{ndcg: rng.Float64()}
		single = append(single, o)
		for range 20 {
			repeated = append(repeated, o)
		}
		starts = append(starts, len(repeated))
	}
	one, twenty := newResult(single, 0), newResult(repeated, 0)
	twenty.starts = starts
	low, high := one.Interval()
	if l, h := twenty.Interval(); math.Abs(l-low) > 1e-9 || math.Abs(h-high) > 1e-9 {
		t.Errorf("interval of repeated cases = %g to %g, want %g to %g", l, h, low, high)
	}
}

// By the protocol rolling a user has several cases.
func TestRollingCasesByUser(t *testing.T) {
	c, err := shop(60, 3_000, 40).Cases(t.Context(), viewed, Options{Protocol: Rolling})
	must.Succeed(t, err)
	r, users := judged(c.Popularity(t.Context())), map[uint64]float64{}
	for i, value := range r.ByCase() {
		users[c.UserKey(i)] += value
	}
	byUser, sum, want := r.ByUser(), 0.0, 0.0
	for _, value := range byUser {
		sum += value
	}
	for _, value := range users {
		want += value
	}
	if len(byUser) != len(users) || c.Users() != len(users) || c.Len() < 2*len(users) || math.Abs(sum-want) > 1e-9 {
		t.Errorf("%d cases of %d users: %d sums that add up to %g, want %d and %g", c.Len(), c.Users(), len(byUser), sum, len(users), want)
	}
}

func TestGainOverNothing(t *testing.T) {
	nothing := newResult([]outcome{{}, {}}, 0)
	one := newResult([]outcome{{ndcg: 1}}, 0)
	if g := nothing.Over(nothing); g != (Gain{}) {
		t.Errorf("gain of nothing over nothing = %+v", g)
	}
	if low, high := one.Interval(); low != 1 || high != 1 {
		t.Errorf("interval of one case = %g to %g", low, high)
	}
}

// The baseline random has the mean of all orders.
func TestRandomIsUniform(t *testing.T) {
	l := shop(10_000, 60_000, 40)
	c, err := l.Cases(t.Context(), viewed, Options{})
	must.Succeed(t, err)
	ndcg, hit, reciprocal := 0.0, 0.0, 0.0
	for i := range c.cases {
		in := &c.cases[i]
		n, r := 40-int(in.seenEnd-in.seenStart), len(in.relevant)
		gain, ideal, missed := 0.0, 0.0, 1.0 // missed: no relevant one so far
		for k := range n {
			if k < 10 {
				gain += float64(r) / float64(n) / math.Log2(float64(k+2))
			}
			if k < min(r, 10) {
				ideal += 1 / math.Log2(float64(k+2))
			}
			first := missed * min(1, float64(r)/float64(n-k))
			reciprocal += first / float64(k+1)
			if k < 10 {
				hit += first
			}
			missed -= first
		}
		ndcg += gain / ideal
	}
	cases := float64(c.Len())
	got, again := judged(c.Random(t.Context())), judged(c.Random(t.Context()))
	for name, pair := range map[string][2]float64{
		"nDCG": {got.NDCG, ndcg / cases}, "hit rate": {got.HitRate, hit / cases}, "MRR": {got.MRR, reciprocal / cases},
	} {
		if math.Abs(pair[0]-pair[1]) > 0.02*pair[1] {
			t.Errorf("%s = %g, want %g within 2 %%", name, pair[0], pair[1])
		}
	}
	if got.NDCG != again.NDCG || got.Coverage != 1 {
		t.Errorf("nDCG %g and then %g, coverage %g", got.NDCG, again.NDCG, got.Coverage)
	}
}

// A result depends on the log, not on the order of its lines, and a sample of
// cases is one of the same cases.
func TestOrderOfInputAndSample(t *testing.T) {
	results := func(reversed bool) (all, some *Result, sampled *Cases) {
		l := shop(300, 3_000, 50)
		if reversed {
			other := shop(300, 0, 50)
			for i := len(l.events) - 1; i >= 0; i-- {
				other.Add(l.event(i))
			}
			l = other
		}
		c, err := l.Cases(t.Context(), viewed, Options{})
		must.Succeed(t, err)
		if sampled, err = l.Cases(t.Context(), viewed, Options{Sample: 20}); err != nil {
			t.Fatal(err)
		}
		all = judged(c.Judge(t.Context(), viewed))
		some = judged(sampled.Judge(t.Context(), viewed))
		return all, some, sampled
	}
	all, some, sampled := results(false)
	allReversed, someReversed, _ := results(true)
	low, high := all.Interval()
	lowReversed, highReversed := allReversed.Interval()
	if all.NDCG != allReversed.NDCG || some.NDCG != someReversed.NDCG || low != lowReversed || high != highReversed {
		t.Errorf("nDCG %g (%g to %g), sampled %g; reversed %g (%g to %g), %g", all.NDCG, low, high, some.NDCG,
			allReversed.NDCG, lowReversed, highReversed, someReversed.NDCG)
	}
	if sampled.Len() != 20 {
		t.Errorf("%d cases in the sample, want 20", sampled.Len())
	}
}

// event returns an event as it was added.
func (l *Log) event(i int) Event {
	e := l.events[i]
	named := Event{User: l.users[e.user], Time: e.time, ID: string(e.id[:]), Type: l.kinds[e.kind].typ, Name: l.kinds[e.kind].name, Index: l.index}
	for _, o := range l.objectsOf(&e) {
		named.ObjectIDs = append(named.ObjectIDs, l.objects[o])
	}
	return named
}
