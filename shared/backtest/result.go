package backtest

import (
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
	means func() []float64
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
	r.means = sync.OnceValue(func() []float64 { return resample(r.cases) })
	return r
}

// ByCase returns the nDCG of each case, in the order of the cases.
func (r *Result) ByCase() []float64 { return slices.Clone(r.cases) }

// Interval returns the bounds of the 95 % interval of the nDCG, by bootstrap
// over cases.
func (r *Result) Interval() (low, high float64) { return bounds(r.means()) }

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
	mine, others := r.means(), base.means()
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

// resample returns the means of as many values drawn with replacement, for each
// resample. Equally many values are always drawn at the same places, so results
// on the same cases are comparable resample by resample.
func resample(values []float64) []float64 {
	means := make([]float64, resamples)
	n := uint64(len(values))
	spread(resamples, func() func(i int) {
		return func(i int) {
			rng, sum := rand.NewPCG(2009, uint64(i)), 0.0
			for range n {
				at, _ := bits.Mul64(rng.Uint64(), n) // uniform but for 2^-64 x n
				sum += values[at]
			}
			means[i] = sum / float64(n)
		}
	})
	return means
}

// bounds returns the 2.5th and the 97.5th percentile.
func bounds(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[n/40], sorted[n-1-n/40]
}
