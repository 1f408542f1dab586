package lift

import (
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
)

var simulations = flag.Int("simulations", race.Or(25, 5), "how many experiments of each world TestSimulations runs")

// world is how simulated people behave, for 30 days.
type world struct {
	name    string
	people  int     // a day; of a fixed audience in all
	control float64 // weight
	buy     float64 // chance that a person buys; of a fixed audience a day
	more    float64 // lift of that chance
	higher  float64 // lift of amounts
	sigma   float64 // of the logarithm of amounts; 0: each counts 1
	fixed   bool    // the same people come every day, and their amounts grow
	tastes  bool    // people differ in how often they come and in what they pay, and did before as they do now
	// explained is the share of the variance that the days before explain at least.
	explained float64
	heavy     bool // takes long: only in the campaign
}

var worlds = []world{
	{name: "revenue, 10,000 a day, no difference", people: 10_000, control: 0.5, buy: 0.01, sigma: 1.5},
	{name: "revenue, 10,000 a day, control of 90 %, no difference", people: 10_000, control: 0.9, buy: 0.01, sigma: 1.5},
	{name: "revenue, 10,000 a day, control of 10 %, no difference", people: 10_000, control: 0.1, buy: 0.01, sigma: 1.5},
	{name: "revenue, 2,000 a day, no difference", people: 2000, control: 0.5, buy: 0.01, sigma: 1.5},
	{name: "revenue, 20,000 who return, no difference", people: 20_000, control: 0.5, buy: 0.001, sigma: 1.5, fixed: true},
	{name: "revenue, 10,000 a day, 20 % more buyers", people: 10_000, control: 0.5, buy: 0.01, more: 0.2, sigma: 1.5},
	{name: "revenue, 10,000 a day, amounts 20 % higher", people: 10_000, control: 0.5, buy: 0.01, higher: 0.2, sigma: 1.5},
	{name: "conversions, 2,000 a day, no difference", people: 2000, control: 0.5, buy: 0.02},
	{name: "conversions, 2,000 a day, 10 % more", people: 2000, control: 0.5, buy: 0.02, more: 0.1},
	{name: "revenue, 100,000 a day, amounts 10 % higher", people: 100_000, control: 0.5, buy: 0.01, higher: 0.1, sigma: 1.5,
		heavy: true},
	{name: "revenue, sigma 2, 10,000 a day, no difference", people: 10_000, control: 0.5, buy: 0.01, sigma: 2, heavy: true},
	{name: "revenue, 5,000 a day, 20 % more, days before known", people: 5000, control: 0.5, buy: 0.01, more: 0.2, sigma: 1.5,
		tastes: true, heavy: true},
	{name: "clicks, 1,000 a day, 5 % more, days before known", people: 1000, control: 0.5, buy: 0.2, more: 0.05, tastes: true,
		explained: 0.2, heavy: true},
}

// The whole is go test ./shared/judge/lift -run Simulations -simulations 2000 -v.
func TestSimulations(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			if w.heavy && *simulations < 500 {
				t.Skip("takes long")
			}
			var s seen
			for i := range *simulations {
				w.run(t, rand.New(rand.NewPCG(uint64(i), 1935)), &s)
			}
			s.check(t, w)
		})
	}
}

// seen is what the simulations of a world have shown.
type seen struct {
	runs, shown, last, always, decided, wrong, uneven int
	width, explained                                  float64
}

func (s *seen) check(t *testing.T, w world) {
	t.Helper()
	n := float64(s.runs)
	t.Logf("%d experiments, %d with an interval on the last day: it holds the true lift on the last day in %.4f, on all 30 "+
		"days in %.4f; decided on any day in %.4f, of a difference for the wrong side in %.4f; the interval is %.2f times as "+
		"wide as one for a single reading; %.0f %% of the variance explained; sample ratio wrong in %.4f",
		s.runs, s.shown, float64(s.last)/n, float64(s.always)/n, float64(s.decided)/n, float64(s.wrong)/n,
		s.width/float64(s.shown), 100*s.explained/float64(s.shown), float64(s.uneven)/n)
	missed := 0.06 * n
	if n < 500 { // fewer may miss more often by chance
		missed += 2 * math.Sqrt(n*0.06*0.94)
	}
	if float64(s.runs-s.always) > missed {
		t.Errorf("the interval holds the true lift on all days in %d of %d, want 0.94", s.always, s.runs)
	}
	if w.more == 0 && w.higher == 0 && float64(s.decided) > missed {
		t.Errorf("%d of %d experiments without a difference were decided, want at most 0.06", s.decided, s.runs)
	}
	if width := s.width / float64(s.shown); !(width <= 2) {
		t.Errorf("on the last day the interval is %.2f times as wide as one for a single reading, want at most 2", width)
	}
	if explained := s.explained / float64(s.shown); explained < w.explained {
		t.Errorf("the days before explain %.3f of the variance, want %v", explained, w.explained)
	}
}

// run simulates one experiment, whose report is read on each day.
func (w world) run(t *testing.T, rng *rand.Rand, s *seen) {
	q := Question{
		Arms: []Arm{{"control", w.control}, {"B", 1 - w.control}}, Metric: Revenue, Population: Exposed, Currency: "EUR",
	}
	truth := (1+w.more)*(1+w.higher) - 1
	always, decided, wrong, uneven := true, false, false, false
	s.runs++
	total, err := NewTally(q)
	if err != nil {
		t.Fatal(err)
	}
	grown := [2]map[int]Money{{}, {}}
	users := [2]int{}
	for day := range 30 {
		if !w.fixed || day == 0 {
			n := binomial(rng, w.people, w.control)
			users = [2]int{n, w.people - n}
		}
		for i, n := range users {
			w.day(rng, i, n, &total.Arms[i], grown[i])
			if !w.fixed || day == 0 {
				total.Arms[i].Users += int64(n)
			}
		}
		total.Question.To = Day(day)
		r := total.Report()
		l := r.Lift[0]
		uneven = uneven || !r.SampleRatio.OK
		checkVerdict(t, r)
		if l.Decided {
			decided, wrong = true, wrong || *l.Relative*truth < 0
		}
		held := l.Low == nil || *l.Low <= truth && truth <= *l.High
		always = always && held
		if day == 29 {
			s.last += int(one(held))
			s.measure(total, l)
		}
	}
	s.always += int(one(always))
	s.decided += int(one(decided))
	s.wrong += int(one(wrong))
	s.uneven += int(one(uneven))
}

// checkVerdict says if a report decides what its interval leaves open, or says so.
func checkVerdict(t *testing.T, r Report) {
	t.Helper()
	l := r.Lift[0]
	open := l.Low == nil || *l.Low <= 0 && *l.High >= 0 || !r.SampleRatio.OK
	if l.Decided == open || l.Decided != strings.Contains(r.Words, "decided, ") {
		t.Errorf("from %v to %v, sample ratio %+v: decided %v: %s", l.Low, l.High, r.SampleRatio, l.Decided, r.Words)
	}
}

// measure compares the interval with the one for a single reading.
func (s *seen) measure(t *Tally, l Lift) {
	if l.Low == nil {
		return
	}
	metric := []sums{t.Arms[0].Metric["EUR"], t.Arms[1].Metric["EUR"]}
	b, _ := boundsOf(metric)
	e, _ := compare(metric[1].moments(t.Arms[1].Users, b), metric[0].moments(t.Arms[0].Users, b))
	once := math.Expm1(e.log+1.96*e.err) - math.Expm1(e.log-1.96*e.err)
	s.shown++
	s.width += (*l.High - *l.Low) / once
	s.explained += l.Explained
}

// day adds what the people of an arm do on a day.
func (w world) day(rng *rand.Rand, arm, people int, a *armTally, grown map[int]Money) {
	buy, amount := w.buy, 50.0
	if arm == 1 {
		buy, amount = buy*(1+w.more), amount*(1+w.higher)
	}
	if w.tastes {
		for range people {
			taste := math.Exp(rng.NormFloat64())
			now, before := poisson(rng, buy*taste), poisson(rng, 4*w.buy*taste)
			a.sums("EUR").add(w.pay(rng, now, amount*taste), w.pay(rng, before, 50*taste))
		}
		return
	}
	for range binomial(rng, people, buy) {
		if money := w.pay(rng, 1, amount); w.fixed {
			grown[rng.IntN(people)] += Money(money)
		} else {
			a.sums("EUR").add(money, 0)
		}
	}
	if w.fixed {
		a.Metric["EUR"] = sums{}
		for _, money := range grown {
			a.sums("EUR").add(int64(money), 0)
		}
	}
}

// pay draws the sum of n amounts.
func (w world) pay(rng *rand.Rand, n int, amount float64) (sum int64) {
	for range n {
		one := Money(1)
		if w.sigma > 0 {
			one = MoneyOf(amount * math.Exp(w.sigma*rng.NormFloat64()))
		}
		sum += int64(one)
	}
	return sum
}

// binomial draws how many of n come, each with a chance of p. Where many come it takes the normal distribution.
func binomial(rng *rand.Rand, n int, p float64) int {
	if mean := float64(n) * p; mean > 50 {
		return max(0, min(int(math.Round(mean+math.Sqrt(mean*(1-p))*rng.NormFloat64())), n))
	}
	k, at := 0, 0.0
	for { // the gaps between those who come
		if at += 1 + math.Floor(math.Log(1-rng.Float64())/math.Log1p(-p)); at > float64(n) {
			return k
		}
		k++
	}
}

func poisson(rng *rand.Rand, mean float64) int {
	k, product := 0, rng.Float64()
	for limit := math.Exp(-mean); product > limit; k++ {
		product *= rng.Float64()
	}
	return k
}
