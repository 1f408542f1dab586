package ranking

import "math"

// IDF returns the contrast of a filter that frequency of the index's objects
// carry: the inverse document frequency log(objects / frequency) of Spärck Jones
// (A statistical interpretation of term specificity, Journal of Documentation
// 28, 1972), with 1 added under the logarithm, so that a filter of every object
// still counts. A filter that the statistics do not know counts as one of a
// single object. Without objects there are no statistics, and the contrast is 1.
func IDF(objects, frequency int) float64 {
	if objects <= 0 {
		return 1
	}
	return math.Log1p(float64(objects) / float64(min(max(frequency, 1), objects)))
}

// PopularityOf returns log(1 + count) / log(1 + highest), at most 1.
func PopularityOf(count, highest float64) float64 {
	if !positive(count) || !positive(highest) {
		return 0
	}
	return min(math.Log1p(count)/math.Log1p(highest), 1)
}

// FreshnessOf returns 2^-(age/halfLife), all in ms. A date in the future has
// the freshness 1.
func FreshnessOf(now, published int64, halfLife float64) float64 {
	age := float64(now) - float64(published)
	if age <= 0 {
		return 1
	}
	if !positive(halfLife) {
		return 0
	}
	return math.Exp2(-age / halfLife)
}

// scale is the range over which relevancies are scaled.
type scale struct {
	low, high float64
	given     bool // some candidate has a relevancy
}

// relevancyScale returns the range of the candidates' relevancies, without
// those that the query excludes.
func relevancyScale(q *Query) scale {
	r := scale{low: math.Inf(1), high: math.Inf(-1)}
	for i := range q.Candidates {
		if c := &q.Candidates[i]; relevant(c) && !excluded(q, c) {
			r.low, r.high, r.given = min(r.low, c.Relevancy), max(r.high, c.Relevancy), true
		}
	}
	return r
}

// of returns a candidate's relevancy in 0..1. If all are equal it is 1. A
// candidate without one has the lowest, 0.
func (r scale) of(c *Candidate) float64 {
	switch {
	case !relevant(c):
		return 0
	case r.low == r.high:
		return 1
	case math.IsInf(r.high-r.low, 0): // large numbers of both signs
		return (c.Relevancy/2 - r.low/2) / (r.high/2 - r.low/2)
	}
	return (c.Relevancy - r.low) / (r.high - r.low)
}

// relevant reports whether c has a relevancy. One that is not finite counts as
// absent.
func relevant(c *Candidate) bool {
	return c.HasRelevancy && !math.IsNaN(c.Relevancy) && !math.IsInf(c.Relevancy, 0)
}

func excluded(q *Query, c *Candidate) bool { return c.Seen && q.Seen == Exclude }

// demotion is the part of the impact that a seen candidate loses under Demote.
const demotion = 0.25

// share returns value as a fraction of the highest value, or 0 if that is 0.
func share(value, highest float64) float64 {
	if highest == 0 {
		return 0
	}
	return value / highest
}

// positive reports whether x is above 0 and finite.
func positive(x float64) bool { return x > 0 && x <= math.MaxFloat64 }

// bounded keeps a sum of positive numbers finite.
func bounded(x float64) float64 { return min(x, math.MaxFloat64) }

// limited returns how many of n items the query asks for.
func limited(q *Query, n int) int {
	if q.Limit > 0 {
		return min(q.Limit, n)
	}
	return n
}
