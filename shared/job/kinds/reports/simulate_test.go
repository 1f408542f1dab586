package reports_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/race"
)

var simulations = flag.Int("simulations", race.Or(2, 1), "how many experiments of each world TestSimulations sends through the engine")

// world is how simulated people behave in an experiment of ten days.
type world struct {
	name   string
	people int
	do     float64 // chance that a person clicks or buys
	more   float64 // lift of that chance
	metric lift.Metric
	heavy  bool // takes long: only in the campaign
}

// Of revenue, the logarithm of an order has a sigma of 1.5.
var worlds = []world{
	{name: "clicks, no difference", people: 1_000, do: 0.3, metric: lift.Clicks},
	{name: "clicks, 30 % more", people: 1_000, do: 0.3, more: 0.3, metric: lift.Clicks},
	{name: "revenue of 1 % of the people, no difference", people: 24_000, do: 0.01, metric: lift.Revenue, heavy: true},
	{name: "revenue of 1 % of the people, 50 % more buyers", people: 24_000, do: 0.01, more: 0.5, metric: lift.Revenue, heavy: true},
}

// Reports of experiments whose true lift is known hold it, from the events in the log to the interval. The whole campaign is
//
//	go test ./shared/job/kinds/reports -run Simulations -v -timeout 1h -simulations 25
func TestSimulations(t *testing.T) {
	runs, held, decided, same := 0, 0, 0, 0
	for _, w := range worlds {
		if w.heavy && *simulations < 25 {
			continue
		}
		heldHere, decidedHere := 0, 0
		for i := range *simulations {
			l := w.run(t, rand.New(rand.NewPCG(uint64(i), 2027)))
			if l.Low == nil || *l.Low <= w.more && w.more <= *l.High {
				heldHere++
			}
			if l.Decided {
				decidedHere++
			}
		}
		t.Logf("%s: %d of %d intervals hold the true lift, %d are decided", w.name, heldHere, *simulations, decidedHere)
		runs, held = runs+*simulations, held+heldHere
		if w.more == 0 {
			same, decided = same+*simulations, decided+decidedHere
		}
	}
	slack := func(n int) float64 { // what chance adds to 6 %
		return 0.06*float64(n) + 2*math.Sqrt(float64(n)*0.06*0.94)
	}
	t.Logf("in all: %d of %d intervals hold the true lift; of %d experiments without a difference %d are decided", held, runs, same, decided)
	if float64(runs-held) > slack(runs) || float64(decided) > slack(same) {
		t.Errorf("%d of %d intervals miss the true lift, %d of %d experiments without a difference are decided", runs-held, runs, decided, same)
	}
}

// run sends what the people of an experiment do to an engine, and returns what its report says of the metric.
func (w world) run(t *testing.T, r *rand.Rand) lift.Lift {
	h := newHarness(t, 0)
	h.experiment = h.half(10)
	h.experiment.Coverage, h.experiment.Seed = 1, fmt.Sprint(r.Uint64())
	var all []logged
	for i := range w.people {
		user := fmt.Sprint("u", i)
		chance := w.do
		if arm, _ := h.experiment.Arm(user); arm == 1 {
			chance *= 1 + w.more
		}
		l := logged{user: user, at: h.Now.Add(-day - time.Duration(r.Int64N(int64(9*day)))).Truncate(time.Millisecond), typ: event.View}
		if all = append(all, l); r.Float64() < chance {
			l.typ = event.Click
			if w.metric == lift.Revenue {
				l.typ, l.currency, l.price = event.Conversion, "EUR", math.Round(40_00*math.Exp(1.5*r.NormFloat64()))/100
			}
			l.at = l.at.Add(time.Second)
			all = append(all, l)
		}
	}
	_, err := h.engine.Import(t.Context(), h.app(), h.events(all...))
	must.Succeed(t, err)
	_, body := h.report(reports.Request{Experiment: "checkout"})
	return body.Reports[w.metric].Lift[0]
}
