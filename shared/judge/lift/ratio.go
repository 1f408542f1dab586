package lift

import "math"

const (
	// suspicious is the chance below which arms have not the people that their weights give.
	suspicious = 0.001
	// few is the expected number of people of an arm below which the test is exact.
	few = 25
)

// sampleRatio returns the chance that people who are divided by the weights are divided as unevenly as this: the
// chi-square test of Pearson. If few people are expected in an arm, each arm is compared with all others by the exact
// binomial test instead, and the smallest chance is multiplied by the number of comparisons.
func sampleRatio(people []int64, weights []float64) float64 {
	var all, weight float64
	for i, n := range people {
		all += float64(n)
		weight += weights[i]
	}
	if all == 0 || weight == 0 {
		return 1
	}
	square, freedom, exact := 0.0, -1, false
	for i, n := range people {
		expected := all * weights[i] / weight
		switch {
		case expected > 0:
			square += (float64(n) - expected) * (float64(n) - expected) / expected
			freedom++
			exact = exact || expected < few
		case n > 0:
			return 0
		}
	}
	if !exact || freedom < 1 {
		return chiSquare(square, freedom)
	}
	p := 1.0
	for i, n := range people {
		p = min(p, binomialTest(n, int64(all), weights[i]/weight))
	}
	if freedom == 1 { // both comparisons are the same
		return p
	}
	return min(1, p*float64(freedom+1))
}

// chiSquare returns the chance of a value as large as square with so many degrees of freedom, by the finite sums
// that the incomplete gamma function is for halves and whole numbers.
func chiSquare(square float64, freedom int) float64 {
	if freedom < 1 {
		return 1
	}
	half := square / 2
	sum, term, at := 0.0, math.Exp(-half), 0.0
	if freedom%2 == 1 {
		sum = math.Erfc(math.Sqrt(half))
		term *= math.Sqrt(half) / math.Gamma(1.5)
		at = 0.5
	}
	for ; at < float64(freedom)/2-0.25; at++ {
		sum += term
		term *= half / (at + 1)
	}
	return min(sum, 1)
}

// binomialTest returns the chance that of all people, each of whom comes with a chance of share, the number who come
// is n or one that is not likelier than n.
func binomialTest(n, all int64, share float64) float64 {
	if share > 0.5 {
		n, share = all-n, 1-share
	}
	if share == 0 {
		return 1
	}
	mean := float64(all) * share
	odds := math.Log(share) - math.Log1p(-share)
	log := func(k int64) float64 { // of the chance of k, without what all k share
		whole, _ := math.Lgamma(float64(k) + 1)
		rest, _ := math.Lgamma(float64(all-k) + 1)
		return float64(k)*odds - whole - rest
	}
	const slack = 1e-7 // equal chances, computed in two ways
	seen := log(n) + slack
	top := log(int64(mean))
	var sum, p float64
	for k := range min(all, int64(mean+40*math.Sqrt(mean)+100)) + 1 { // the rest is below 1e-100
		chance := math.Exp(log(k) - top)
		sum += chance
		if log(k) <= seen {
			p += chance
		}
	}
	return p / sum
}
