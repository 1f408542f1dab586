package lift

import (
	"fmt"
	"math"
)

const (
	// power is the share of experiments with a difference that show it by the time that is asked for.
	power = 0.8
	// longest is the number of days beyond which no time is said.
	longest = 3650
)

// reach returns the smallest logarithm of a ratio that so many people show, with a chance of power, at the last
// reading: their interval leaves out 0 then. variance is that of the estimate times the people.
func reach(variance, people, alpha float64) float64 {
	return (multiplier(people, alpha) + normal(power)) * math.Sqrt(variance/people)
}

// peopleFor returns the number of people who show a relative lift, by bisection: reach falls as they grow.
func peopleFor(lift, variance, alpha float64) float64 {
	low, high := 1.0, 1e18
	for high > low*(1+1e-9) {
		if middle := math.Sqrt(low * high); reach(variance, middle, alpha) > math.Log1p(lift) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// Test is an experiment that is planned.
type Test struct {
	Base    float64 // share of people who convert without the change, or click, or buy: 0.02
	Spread  float64 // standard deviation of the amounts of those who do, over their mean; 0: each counts once
	Effect  float64 // relative difference that it has to show: 0.05 is from 2 % to 2.1 %
	Daily   float64 // new people a day, in all arms together
	Arms    int     // with the control
	Control float64 // share of the people in the control; the other arms share the rest equally
}

// Needs is what a test needs to show its effect in four of five cases.
type Needs struct {
	Days    int   `json:"days"`    // of a test whose report is read at any time
	People  int64 `json:"people"`  // in all arms
	Control int64 `json:"control"` // people in the control
	Arm     int64 `json:"arm"`     // people in each other arm
	// OnceDays are the days of a test whose report is read only once, on the last day.
	OnceDays int `json:"onceDays"`
	// Shows are the differences that it shows after 2, 4 and 8 weeks.
	Shows []Shown `json:"shows"`
}

// Shown is the smallest relative difference that so many days show in four of five cases.
type Shown struct {
	Days   int     `json:"days"`
	Effect float64 `json:"effect"`
}

// Size returns what a test needs. The error says which figure makes no sense, or that the test
// takes more than ten years.
func Size(t Test) (Needs, error) {
	if err := t.check(); err != nil {
		return Needs{}, err
	}
	// A pair is the control and one other arm. The multiplier goes by its people.
	arm := (1 - t.Control) / float64(t.Arms-1)
	pair, level := t.Control+arm, alpha/float64(t.Arms-1)
	variance := pair * (t.relative(0)/t.Control + t.relative(t.Effect)/arm)
	least := enough / (t.Base * min(t.Control, arm)) // so that each arm has enough people with an amount
	people := max(peopleFor(t.Effect, variance, level)/pair, least)
	days := math.Ceil(people / t.Daily)
	if days > longest {
		return Needs{}, fmt.Errorf(
			"effect %v: takes %.0f days to show, more than ten years; it must be larger, or more people must come a day",
			t.Effect, days)
	}
	once := math.Pow((normal(1-level/2)+normal(power))/math.Log1p(t.Effect), 2) * variance / pair
	n := Needs{
		Days: int(days), OnceDays: int(math.Ceil(once / t.Daily)), People: int64(math.Ceil(people)),
		Control: int64(math.Ceil(people * t.Control)), Arm: int64(math.Ceil(people * arm)),
	}
	variance = pair * (t.relative(0)/t.Control + t.relative(0)/arm)
	for _, days := range []int{14, 28, 56} {
		if all := float64(days) * t.Daily; all >= least {
			n.Shows = append(n.Shows, Shown{Days: days, Effect: math.Expm1(reach(variance, all*pair, level))})
		}
	}
	return n, nil
}

// check says which figure makes no sense.
func (t Test) check() error {
	switch {
	case !(t.Base > 0 && t.Base < 1):
		return fmt.Errorf("base %v: must be a share between 0 and 1, such as 0.02", t.Base)
	case !(t.Effect > 0 && t.Effect <= 10):
		return fmt.Errorf("effect %v: must be above 0 and at most 10, such as 0.05 for 5 %%", t.Effect)
	case t.Base*(1+t.Effect) >= 1:
		return fmt.Errorf("effect %v: with a base of %v, more people than all would convert", t.Effect, t.Base)
	case !(t.Spread >= 0 && t.Spread <= 1000):
		return fmt.Errorf("spread %v: must be 0 to 1,000", t.Spread)
	case !(t.Daily >= 1 && t.Daily <= 1e10):
		return fmt.Errorf("daily %v: must be 1 to 10,000,000,000 new people a day", t.Daily)
	case t.Arms < 2 || t.Arms > 100:
		return fmt.Errorf("arms %d: must be 2 to 100, with the control", t.Arms)
	case !(t.Control > 0 && t.Control < 1):
		return fmt.Errorf("control %v: must be a share between 0 and 1, such as 0.5", t.Control)
	}
	return nil
}

// relative returns the variance of a person's amount over the square of its mean, after a lift of the share of those
// who have one.
func (t Test) relative(lift float64) float64 {
	return (1+t.Spread*t.Spread)/(t.Base*(1+lift)) - 1
}
