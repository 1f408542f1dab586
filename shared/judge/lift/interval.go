package lift

import "math"

const (
	// alpha is the chance that a report of an experiment without any difference is ever decided, however often it is
	// read. The arms that are compared with the control share it.
	alpha = 0.05
	// narrowest is the number of people at which the always-valid interval is narrowest, compared with one for a
	// single reading: GrowthBook's default. It is a constant, since a number chosen after a look at the data would
	// void the interval. From 500 people to 6 millions the interval is at most twice as wide as the other one.
	narrowest = 5000
	// rare bounds heavy tails: of the people with an amount, at most one in so many have theirs cut.
	rare = 1000
	// enough is the number of people with an amount in each arm from which on there is an interval. Of fewer people
	// means are too far from normal.
	enough = 100
)

// multiplier returns how many standard errors the always-valid interval reaches to each side of the estimate at so
// many people of both arms. Intervals of all numbers of people hold the true value together with a chance of
// 1 - alpha: it is the normal mixture of Robbins in the asymptotic form of Waudby-Smith, Arbour, Sinha, Kennedy and
// Ramdas (Time-uniform central limit theory and asymptotic confidence sequences, 2021). It is never below 3.03 for
// an alpha of 0.05. So it also holds for months if nobody new comes and only the amounts of the same people grow.
func multiplier(people, alpha float64) float64 {
	log := -2 * math.Log(alpha)
	x := people * (log + math.Log(log+1)) / narrowest
	return math.Sqrt(2 * (x + 1) / x * math.Log(math.Sqrt(x+1)/alpha))
}

// normal returns the quantile of the normal distribution.
func normal(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// estimate is the ratio of the means of two arms, on the scale of its logarithm. On that scale it is nearer to
// normal than the ratio is, where few people have most of the amounts.
type estimate struct {
	log     float64 // of the ratio
	err     float64 // standard error of log, by the delta method
	people  float64 // of both arms
	removed float64 // the share of the variance that the days before explain
}

// compare estimates the ratio of arm a to the control c, false if one of their means is not above 0. The means are
// adjusted by what the same people did before (CUPED): m = y - theta (x - mean of x over both arms), with the slope
// theta of y on x within the arms.
func compare(a, c moments) (estimate, bool) {
	theta := 0.0
	if xx := a.people*a.xx + c.people*c.xx; xx > 0 {
		theta = (a.people*a.xy + c.people*c.xy) / xx
	}
	plain, ok := adjusted(a, c, 0)
	e, adjustable := adjusted(a, c, theta)
	if !adjustable {
		return plain, ok
	}
	if plain.err > 0 {
		e.removed = 1 - (e.err*e.err)/(plain.err*plain.err)
	}
	return e, true
}

// adjusted counts in the standard error that both means share the mean of x.
func adjusted(a, c moments, theta float64) (estimate, bool) {
	people := a.people + c.people
	shareA, shareC := a.people/people, c.people/people
	x := shareA*a.x + shareC*c.x
	meanA, meanC := a.y-theta*(a.x-x), c.y-theta*(c.x-x)
	if !(meanA > 0) || !(meanC > 0) {
		return estimate{}, false
	}
	// The derivatives of the logarithm by the means of y and x are 1/mean and -slope in a, the opposite in c.
	slope := theta * (shareC/meanA + shareA/meanC)
	variance := a.spread(1/meanA, slope)/a.people + c.spread(1/meanC, slope)/c.people
	return estimate{log: math.Log(meanA / meanC), err: math.Sqrt(max(variance, 0)), people: people}, true
}

// spread returns the variance of a person's factor y - slope x.
func (m moments) spread(factor, slope float64) float64 {
	return factor*factor*m.yy - 2*factor*slope*m.xy + slope*slope*m.xx
}

// relative is the lift: 0.03 if the people of the arm have 3 % more on average.
func (e estimate) relative() float64 { return math.Expm1(e.log) }

// interval returns the ends of the always-valid interval of the lift.
func (e estimate) interval(alpha float64) (low, high float64) {
	reach := multiplier(e.people, alpha) * e.err
	return math.Expm1(e.log - reach), math.Expm1(e.log + reach)
}
