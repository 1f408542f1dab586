package lift

import (
	"math"
	"math/big"
)

// Report is what an experiment has shown so far.
type Report struct {
	Experiment string      `json:"experiment"`
	From       Day         `json:"from"`
	To         Day         `json:"to"` // the last day
	Metric     Metric      `json:"metric"`
	Currency   string      `json:"currency,omitempty"` // of revenue per user; revenue in others does not count there
	Population Population  `json:"population"`
	People     int64       `json:"people"`  // of all arms, each once: in the arm that they saw first
	Crossed    int64       `json:"crossed"` // of them, those who have seen another arm later
	Days       int         `json:"days"`
	Arms       []ArmReport `json:"arms"`
	// Lift compares each arm with the control.
	Lift []Lift `json:"lift"`
	// Series is the lift as of the end of some days, the last of them To; of To alone without a Series.
	Series      []Point     `json:"series"`
	SampleRatio SampleRatio `json:"sampleRatio"`
	Power       Power       `json:"power"`
	Bound       *Bound      `json:"bound"` // null if nobody's amount is beyond it
	Words       string      `json:"words"`
}

// ArmReport is what the people of an arm did.
type ArmReport struct {
	Name        string             `json:"name"`
	Users       int64              `json:"users"`
	Expected    float64            `json:"expected"` // users by the weights
	Exposed     int64              `json:"exposed"`
	Clicks      int64              `json:"clicks"`
	Conversions int64              `json:"conversions"`
	Revenue     map[string]float64 `json:"revenue"` // by currency
	PerUser     float64            `json:"perUser"` // of the metric, as it is: neither bounded nor adjusted
	Attributed  Attributed         `json:"attributed"`
}

// Attributed is what the people of an arm bought after an answer that their conversions name.
type Attributed struct {
	Conversions int64              `json:"conversions"`
	Revenue     map[string]float64 `json:"revenue"` // by currency
	// Position is the mean of where the objects stood in their answers, from 1, of the Positioned conversions whose click
	// says so; null if none does.
	Position   *float64 `json:"position"`
	Positioned int64    `json:"positioned"`
}

// Lift compares an arm with the control.
type Lift struct {
	Arm    string `json:"arm"`
	Over   string `json:"over"` // the control
	Metric Metric `json:"metric"`
	// Relative is 0.03 if the arm has 3 % more per user, of bounded amounts and adjusted by the days before. It is
	// null if one of the means is not above 0.
	Relative *float64 `json:"relative"`
	// Low and High are the ends of the always-valid 95 % interval, null before each arm has 100 people with an amount.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Decided: the interval leaves out 0, and the sample ratio is right.
	Decided bool `json:"decided"`
	// Explained is the share of the variance that the days before have taken away.
	Explained float64 `json:"explained"`
}

// SampleRatio says whether the arms have the people that their weights give.
type SampleRatio struct {
	P  float64 `json:"p"`  // the chance of arms as uneven as these
	OK bool    `json:"ok"` // P is at least 0.001
}

// Power says how many more days a difference of For would take to show, in four of five cases, if each day adds as
// much as the days so far. It is null if nobody can say, or beyond ten years.
type Power struct {
	Days *int    `json:"days"`
	For  float64 `json:"for"`
}

// Bound is what the amount of a user counts at most, and how many users exceed it.
type Bound struct {
	Amount float64 `json:"amount"`
	Users  int64   `json:"users"`
}

// askedEffect is the relative difference that power is about.
const askedEffect = 0.05

// Report makes the report of the people so far.
func (t *Tally) Report() Report {
	q := t.Question
	currency, others := t.currency()
	r := Report{
		Experiment: q.Experiment, From: q.From, To: q.To, Days: int(q.To-q.From) + 1,
		Metric: q.Metric, Currency: currency, Population: q.Population, Power: Power{For: askedEffect},
	}
	metric, users, weights := make([]sums, len(q.Arms)), make([]int64, len(q.Arms)), make([]float64, len(q.Arms))
	for i, a := range t.Arms {
		metric[i], users[i], weights[i] = a.Metric[currency], a.Users, q.Arms[i].Weight
		r.People += a.Users
		r.Crossed += a.Crossed
	}
	r.SampleRatio.P = sampleRatio(users, weights)
	r.SampleRatio.OK = r.SampleRatio.P >= suspicious
	for i, a := range t.Arms {
		r.Arms = append(r.Arms, a.report(q, i, r.People, currency))
	}
	b, beyond := boundsOf(metric)
	if beyond > 0 {
		r.Bound = &Bound{Amount: inUnits(q.Metric, end(b.now)), Users: beyond}
	}
	level, needed := alpha/float64(len(q.Arms)-1), 0.0
	control := metric[0].moments(users[0], b)
	for i := 1; i < len(q.Arms); i++ {
		arm := metric[i].moments(users[i], b)
		l := Lift{Arm: q.Arms[i].Name, Over: q.Arms[0].Name, Metric: q.Metric}
		needed = max(needed, l.fill(arm, control, level, float64(r.Days), r.SampleRatio.OK))
		r.Lift = append(r.Lift, l)
	}
	if more := math.Ceil(needed - float64(r.Days)); more <= longest {
		days := int(max(more, 0))
		r.Power.Days = &days
	}
	r.Series, r.Words = r.points(), r.words(others)
	return r
}

// inUnits returns an amount of the metric as people write it.
func inUnits(m Metric, amount int64) float64 {
	if m == Revenue {
		return float64(amount) / moneyUnit
	}
	return float64(amount)
}

func (a *armTally) report(q Question, i int, people int64, currency string) ArmReport {
	weight := 0.0
	for _, other := range q.Arms {
		weight += other.Weight
	}
	r := ArmReport{
		Name: q.Arms[i].Name, Users: a.Users, Exposed: a.Exposed, Clicks: a.Clicks, Conversions: a.Conversions,
		Revenue: map[string]float64{},
	}
	if weight > 0 {
		r.Expected = float64(people) * q.Arms[i].Weight / weight
	}
	for name, money := range a.Revenue {
		r.Revenue[name] = ratio(money, big.NewInt(moneyUnit))
	}
	r.Attributed = a.Attributed.report()
	if a.Users > 0 {
		total := map[Metric]float64{
			Clicks: float64(a.Clicks), Conversions: float64(a.Conversions), Revenue: r.Revenue[currency],
		}[q.Metric]
		r.PerUser = total / float64(a.Users)
	}
	return r
}

func (a *attributed) report() Attributed {
	r := Attributed{Conversions: a.Orders, Revenue: map[string]float64{}, Positioned: a.Positioned}
	for name, money := range a.Revenue {
		r.Revenue[name] = ratio(money, big.NewInt(moneyUnit))
	}
	if a.Positioned > 0 {
		mean := float64(a.Positions) / float64(a.Positioned)
		r.Position = &mean
	}
	return r
}

// fill fills in the figures of an arm against the control, and returns after how many days in all a difference of
// askedEffect shows if people and amounts go on to come as they did so far; infinity if nobody can say.
func (l *Lift) fill(arm, control moments, level, days float64, ratioOK bool) float64 {
	e, ok := compare(arm, control)
	if !ok {
		return math.Inf(1)
	}
	relative := e.relative()
	l.Relative, l.Explained = &relative, e.removed
	some := min(arm.some, control.some)
	if some >= enough {
		low, high := e.interval(level)
		l.Low, l.High = &low, &high
		l.Decided = ratioOK && (low > 0 || high < 0)
	}
	needed := peopleFor(askedEffect, e.err*e.err*e.people, level) / e.people
	return days * max(needed, enough/some)
}
