// Package lift is the statistics of an experiment: from what each person of an arm did by day to a report in words.
// It does no I/O and keeps nothing. Equal input gives an equal report, in whatever order and parts it comes.
//
// A lift is the relative difference between the mean of an arm and that of the control, of clicks, conversions or
// revenue per person. Its interval is always valid: it may be read every day, and the experiment may end when it leaves
// out 0. Days before the experiment make it narrower (CUPED). Amounts of one person are cut at a bound, one for all
// arms: the end of the bucket that leaves at most a thousandth of the people with an amount beyond it. So the lift is
// one of bounded amounts. README.md says how the constants were chosen and what simulations have shown.
package lift

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Metric is what a lift compares, per person.
type Metric string

// The metrics.
const (
	Clicks      Metric = "clicks"
	Conversions Metric = "conversions"
	Revenue     Metric = "revenue"
)

// Population says which people a report counts.
type Population string

const (
	// Active people have an event between the days of the report. All their amounts of these days count.
	Active Population = "active"
	// Exposed people have seen their arm by the last day of the report. Amounts count from that day on.
	Exposed Population = "exposed"
)

// before is the number of days before an experiment whose amounts adjust those during it: whole weeks.
const before = 28

// Day is a day in UTC: the number of days since 1970-01-01. Its text is 2026-11-30.
type Day int32

// DayOf returns the day of an instant.
func DayOf(t time.Time) Day {
	const seconds = 24 * 60 * 60
	return Day(math.Floor(float64(t.Unix()) / seconds))
}

// Time returns the first instant of the day.
func (d Day) Time() time.Time { return time.Unix(int64(d)*24*60*60, 0).UTC() }

// String returns the day as 2026-11-30.
func (d Day) String() string { return d.Time().Format(time.DateOnly) }

// MarshalText returns the same.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads it.
func (d *Day) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	if err != nil {
		return fmt.Errorf("%q is no day: must be written as 2026-11-30", text)
	}
	*d = DayOf(t)
	return nil
}

// Money is an amount in ten thousandths of its currency. Sums of integers are equal in any order.
type Money int64

const (
	moneyUnit = 10_000
	mostMoney = 1e15
)

// MoneyOf returns the nearest Money, at most 100,000,000,000 of the currency. What is no number is 0.
func MoneyOf(amount float64) Money {
	units := math.Round(amount * moneyUnit)
	if math.IsNaN(units) {
		return 0
	}
	return Money(max(-mostMoney, min(units, mostMoney)))
}

// Sums are what a person did on a day.
type Sums struct {
	Clicks, Conversions int64
	Revenue             map[string]Money // by currency, in capital letters; "" if none was named
}

// Exposure says when a person has first seen an arm under one of their tokens.
type Exposure struct {
	At  time.Time
	Arm string
}

// Person is what a report counts of a person of one or more tokens.
type Person struct {
	// Arm is the one that the assignment gives them, "" if none. It counts if they have not been exposed.
	Arm string
	// Exposures are those of their tokens, in any order. The arm of the first one counts.
	Exposures []Exposure
	// Others are the arms that the assignment gives to their other tokens with events in the days, "" for none. One that
	// is not Arm makes them crossed, if they have not been exposed.
	Others []string
	// Days are the days on which they have an event, those before the experiment too. A day with other events than
	// clicks and conversions is there with zeros.
	Days map[Day]Sums
	// Orders are their conversions that name the answer which led to them. They are in Days, too.
	Orders []Order
}

// Order is a conversion that names the answer of a ranking which led to it.
type Order struct {
	Day      Day
	Revenue  Money
	Currency string
	// Position is where the object stood in the answer when the person clicked it, from 1; 0: no click says so.
	Position int64
}

// arm returns the arm of the person and the day of their first exposure, and whether they have seen another arm too,
// all as of the end of a day. Of exposures at one instant the first by the name of the arm counts.
func (p Person) arm(last Day) (name string, exposed bool, since Day, crossed bool) {
	var first Exposure
	for _, e := range p.Exposures {
		if DayOf(e.At) > last {
			continue
		}
		crossed = crossed || exposed && e.Arm != first.Arm
		if !exposed || e.At.Before(first.At) || e.At.Equal(first.At) && e.Arm < first.Arm {
			first, exposed = e, true
		}
	}
	if !exposed {
		other := func(arm string) bool { return arm != "" && arm != p.Arm }
		return p.Arm, false, 0, p.Arm != "" && slices.ContainsFunc(p.Others, other)
	}
	return first.Arm, true, DayOf(first.At), crossed
}
