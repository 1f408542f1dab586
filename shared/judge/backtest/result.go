package backtest

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
)

// Result says how well a ranking did: means over all cases.
type Result struct {
	NDCG     float64 // normalized discounted cumulative gain of the top list
	HitRate  float64 // the share of cases with a relevant object in the top list
	MRR      float64 // mean reciprocal rank of the first relevant object, in the whole order
	Coverage float64 // the share of the index's objects in at least one top list

	cases []float64 // nDCG by case
	// starts are the places in cases at which each user's cases start, and the end.
	// Nil: each case is of another user.
	starts []int

	mu    sync.Mutex
	means []float64 // of the resamples; nil before the first use
}

func newResult(outcomes []outcome, coverage float64) *Result {
	r := &Result{Coverage: coverage, cases: make([]float64, len(outcomes))}
	for i, o := range outcomes {
		r.cases[i] = o.ndcg
		r.NDCG += o.ndcg
		r.HitRate += o.hit
		r.MRR += o.reciprocal
	}
	n := float64(len(outcomes))
	r.NDCG, r.HitRate, r.MRR = r.NDCG/n, r.HitRate/n, r.MRR/n
	return r
}

// result returns the result of outcomes by case.
func (c *Cases) result(outcomes []outcome, coverage float64) *Result {
	r := newResult(outcomes, coverage)
	for i := range c.cases {
		if i == 0 || c.cases[i].user != c.cases[i-1].user {
			r.starts = append(r.starts, i)
		}
	}
	r.starts = append(r.starts, len(c.cases))
	return r
}

// ByCase returns the nDCG of each case, in the order of the cases.
func (r *Result) ByCase() []float64 { return slices.Clone(r.cases) }

// ByUser returns the sum of the nDCG over each user's cases, in the order of the
// cases. What one case of a user says about an order, their others mostly say
// again, so a test must take them as one observation.
func (r *Result) ByUser() []float64 {
	if r.starts == nil {
		return r.ByCase()
	}
	sums := make([]float64, len(r.starts)-1)
	for u := range sums {
		for _, value := range r.cases[r.starts[u]:r.starts[u+1]] {
			sums[u] += value
		}
	}
	return sums
}

// Resample computes what Interval and Over need, which takes them seconds for many
// cases, and keeps it. The error is that of ctx.
func (r *Result) Resample(ctx context.Context) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.means == nil {
		r.means, err = resample(ctx, r.cases, r.starts)
	}
	return err
}

// resampled returns the means of the resamples.
func (r *Result) resampled() []float64 {
	_ = r.Resample(context.Background()) // never ends
	return r.means
}

// Interval returns the bounds of the 95 % interval of the nDCG, by bootstrap
// over users with all of their cases.
func (r *Result) Interval() (low, high float64) { return bounds(r.resampled()) }

// Gain compares two results on the same cases.
type Gain struct {
	// Difference of the nDCG, with the bounds of its 95 % interval.
	Difference, Low, High float64
	// Ratio of the nDCG, with its interval; 0 if the base is 0 everywhere. Where
	// the base of a resample is 0, the resample does not count.
	Ratio, RatioLow, RatioHigh float64
}

// Over returns the gain of r over a base. Both must be results of the same
// cases. The intervals are paired: both see the same resamples.
func (r *Result) Over(base *Result) Gain {
	g := Gain{Difference: r.NDCG - base.NDCG}
	mine, others := r.resampled(), base.resampled()
	var differences, ratios []float64
	for i := range mine {
		differences = append(differences, mine[i]-others[i])
		if others[i] > 0 {
			ratios = append(ratios, mine[i]/others[i])
		}
	}
	g.Low, g.High = bounds(differences)
	if base.NDCG > 0 && len(ratios) > 0 {
		g.Ratio = r.NDCG / base.NDCG
		g.RatioLow, g.RatioHigh = bounds(ratios)
	}
	return g
}

// resamples is the number of bootstrap resamples.
const resamples = 1000

// resample returns the mean of the values of as many users drawn with replacement,
// for each resample. Of equally many users always the same are drawn, so results
// on the same cases are comparable resample by resample. starts are those of a
// Result. The error is that of ctx.
func resample(ctx context.Context, values []float64, starts []int) ([]float64, error) {
	if starts == nil {
		for i := range len(values) + 1 {
			starts = append(starts, i)
		}
	}
	means := make([]float64, resamples)
	n := uint64(len(starts) - 1)
	err := spread(ctx, resamples, func() func(i int) {
		return func(i int) {
			rng, sum, drawn := rand.NewPCG(2009, uint64(i)), 0.0, 0
			for range n {
				at, _ := bits.Mul64(rng.Uint64(), n) // uniform but for 2^-64 x n
				own := values[starts[at]:starts[at+1]]
				for _, value := range own {
					sum += value
				}
				drawn += len(own)
			}
			means[i] = sum / float64(drawn)
		}
	})
	if err != nil {
		return nil, err
	}
	return means, nil
}

// bounds returns the 2.5th and the 97.5th percentile.
func bounds(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[n/40], sorted[n-1-n/40]
}
