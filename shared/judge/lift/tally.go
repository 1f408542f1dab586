package lift

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
)

// Arm is an arm of an experiment with its weight: the people of two arms are as their weights.
type Arm struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
}

// Question says what a report is about.
type Question struct {
	Experiment string     `json:"experiment"`
	Arms       []Arm      `json:"arms"`  // the first is the control
	Start      Day        `json:"start"` // of the experiment: the four weeks before it adjust the lift
	From       Day        `json:"from"`
	To         Day        `json:"to"` // the last day
	Metric     Metric     `json:"metric"`
	Population Population `json:"population"`
	// Currency of revenue; "" is the one in which most people paid.
	Currency string `json:"currency,omitempty"`
	// Plain says that the weeks before do not adjust the lift.
	Plain bool `json:"plain,omitempty"`
}

// check says what is wrong.
func (q Question) check() error {
	names := map[string]bool{}
	for _, a := range q.Arms {
		if names[a.Name] {
			return fmt.Errorf("arms: %q is there twice", a.Name)
		}
		if !(a.Weight >= 0) || math.IsInf(a.Weight, 1) {
			return fmt.Errorf("arms: the weight of %q must be 0 or more", a.Name)
		}
		names[a.Name] = true
	}
	switch {
	case len(q.Arms) < 2:
		return fmt.Errorf("arms: must be two or more, the first one is the control")
	case q.To < q.From:
		return fmt.Errorf("to: %v is before from, %v", q.To, q.From)
	case q.From < q.Start:
		return fmt.Errorf("from: %v is before the start of the experiment, %v", q.From, q.Start)
	case q.Metric != Clicks && q.Metric != Conversions && q.Metric != Revenue:
		return fmt.Errorf("metric: must be %s, %s or %s", Clicks, Conversions, Revenue)
	case q.Population != Active && q.Population != Exposed:
		return fmt.Errorf("population: must be %s or %s", Active, Exposed)
	}
	return nil
}

// Tally adds up people for a report. Tallies of parts of the people, each person in one of them, merge exactly, in any
// order: all their sums are of integers. As JSON a tally can be kept until others are there.
type Tally struct {
	Question Question   `json:"question"`
	Arms     []armTally `json:"tallies"` // in the order of the question
}

// armTally is what a tally holds of an arm.
type armTally struct {
	Users       int64               `json:"users"`
	Exposed     int64               `json:"exposed"`
	Crossed     int64               `json:"crossed"`
	Clicks      int64               `json:"clicks"`
	Conversions int64               `json:"conversions"`
	Revenue     map[string]*big.Int `json:"revenue"` // by currency, in units of Money
	Metric      map[string]sums     `json:"metric"`  // by currency, "" where the metric is not revenue
	Attributed  attributed          `json:"attributed"`
}

// attributed is what a tally holds of the orders of an arm.
type attributed struct {
	Orders     int64               `json:"orders"`
	Revenue    map[string]*big.Int `json:"revenue"`
	Positioned int64               `json:"positioned"` // orders with a position
	Positions  int64               `json:"positions"`  // their sum
}

func (a *attributed) add(o Order) {
	a.Orders++
	if o.Revenue != 0 {
		earn(a.Revenue, o.Currency, big.NewInt(int64(o.Revenue)))
	}
	if o.Position > 0 {
		a.Positioned++
		a.Positions += o.Position
	}
}

func (a *attributed) merge(o attributed) {
	a.Orders += o.Orders
	a.Positioned += o.Positioned
	a.Positions += o.Positions
	for currency, money := range o.Revenue {
		earn(a.Revenue, currency, money)
	}
}

// NewTally returns an empty tally. The error says what is wrong with the question.
func NewTally(q Question) (*Tally, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	t := &Tally{Question: q, Arms: make([]armTally, len(q.Arms))}
	for i := range t.Arms {
		t.Arms[i].Revenue, t.Arms[i].Metric = map[string]*big.Int{}, map[string]sums{}
		t.Arms[i].Attributed.Revenue = map[string]*big.Int{}
	}
	return t, nil
}

// Add counts a person, unless they are in no arm or not in the population.
func (t *Tally) Add(p Person) { Add(p, t) }

// Add counts a person in tallies whose questions differ in their metrics alone.
func Add(p Person, tallies ...*Tally) {
	q := &tallies[0].Question
	name, exposed, since, crossed := p.arm(q.To)
	i := slices.IndexFunc(q.Arms, func(a Arm) bool { return a.Name == name })
	from := q.From
	if q.Population == Exposed {
		from = max(from, since)
	}
	now, earlier, active := p.amounts(q, from)
	if i < 0 || q.Population == Exposed && !exposed || q.Population == Active && !active {
		return
	}
	for _, t := range tallies {
		a := &t.Arms[i]
		a.Users++
		a.Exposed += one(exposed)
		a.Crossed += one(crossed)
		a.add(t.Question.Metric, now, earlier)
		for _, o := range p.Orders {
			if from <= o.Day && o.Day <= q.To {
				a.Attributed.add(o)
			}
		}
	}
}

// add adds what a person did from the day on which it counts, and in the weeks before.
func (a *armTally) add(m Metric, now, earlier Sums) {
	a.Clicks += now.Clicks
	a.Conversions += now.Conversions
	for currency, money := range now.Revenue {
		earn(a.Revenue, currency, big.NewInt(int64(money)))
	}
	switch m {
	case Clicks:
		a.sums("").add(now.Clicks, earlier.Clicks)
	case Conversions:
		a.sums("").add(now.Conversions, earlier.Conversions)
	case Revenue:
		for currency, money := range now.Revenue {
			a.sums(currency).add(int64(money), int64(earlier.Revenue[currency]))
		}
		for currency, money := range earlier.Revenue {
			if _, both := now.Revenue[currency]; !both {
				a.sums(currency).add(0, int64(money))
			}
		}
	}
}

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// amounts returns what the person did from a day to the end of the report, and in the weeks before the experiment,
// and whether they have an event between the days of the report.
func (p Person) amounts(q *Question, from Day) (now, earlier Sums, active bool) {
	for day, s := range p.Days {
		active = active || q.From <= day && day <= q.To
		switch {
		case from <= day && day <= q.To:
			now.add(s)
		case !q.Plain && q.Start-before <= day && day < q.Start:
			earlier.add(s)
		}
	}
	return now, earlier, active
}

func (s *Sums) add(o Sums) {
	s.Clicks += o.Clicks
	s.Conversions += o.Conversions
	if s.Revenue == nil && len(o.Revenue) > 0 {
		s.Revenue = map[string]Money{}
	}
	for currency, money := range o.Revenue {
		s.Revenue[currency] += money
	}
}

func earn(revenue map[string]*big.Int, currency string, money *big.Int) {
	if revenue[currency] == nil {
		revenue[currency] = new(big.Int)
	}
	revenue[currency].Add(revenue[currency], money)
}

func (a *armTally) sums(currency string) sums {
	if a.Metric[currency] == nil {
		a.Metric[currency] = sums{}
	}
	return a.Metric[currency]
}

// Merge adds a tally of other people. The error says that it is one for another question.
func (t *Tally) Merge(other *Tally) error {
	if !reflect.DeepEqual(t.Question, other.Question) || len(t.Arms) != len(other.Arms) {
		return fmt.Errorf("merge tallies of an experiment: the questions differ: %+v and %+v", t.Question, other.Question)
	}
	for i := range other.Arms {
		a, o := &t.Arms[i], &other.Arms[i]
		a.Users += o.Users
		a.Exposed += o.Exposed
		a.Crossed += o.Crossed
		a.Clicks += o.Clicks
		a.Conversions += o.Conversions
		for currency, money := range o.Revenue {
			earn(a.Revenue, currency, money)
		}
		for currency, s := range o.Metric {
			a.sums(currency).merge(s)
		}
		a.Attributed.merge(o.Attributed)
	}
	return nil
}

// currency returns that of the report: the one that was asked for, or the one in which most people paid, of equal ones
// the first by name; and whether people paid in others too.
func (t *Tally) currency() (currency string, others bool) {
	if t.Question.Metric != Revenue {
		return "", false
	}
	people := map[string]int64{}
	for _, a := range t.Arms {
		for name, s := range a.Metric {
			for at, c := range s {
				if at.now != 0 {
					people[name] += c.People
				}
			}
		}
	}
	currency = t.Question.Currency
	if currency == "" && len(people) > 0 {
		currency = slices.MinFunc(slices.Collect(maps.Keys(people)), func(a, b string) int {
			return cmp.Or(cmp.Compare(people[b], people[a]), cmp.Compare(a, b))
		})
	}
	delete(people, currency)
	return currency, len(people) > 0
}
