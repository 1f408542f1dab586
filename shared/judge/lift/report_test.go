package lift_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/judge/lift"
)

var start = lift.DayOf(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))

func question(metric lift.Metric, population lift.Population) lift.Question {
	return lift.Question{
		Experiment: "checkout", Arms: []lift.Arm{{Name: "control", Weight: 1}, {Name: "B", Weight: 1}},
		Start: start, From: start, To: start + 13, Metric: metric, Population: population,
	}
}

func tallyOf(t interface{ Fatal(args ...any) }, q lift.Question, people ...lift.Person) *lift.Tally {
	tally, err := lift.NewTally(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range people {
		tally.Add(p)
	}
	return tally
}

func text(t interface{ Fatal(args ...any) }, value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func randomPerson(t *rapid.T) lift.Person {
	arm := rapid.SampledFrom([]string{"control", "B", "C", ""})
	p := lift.Person{Arm: arm.Draw(t, "arm"), Days: map[lift.Day]lift.Sums{}}
	for range rapid.IntRange(0, 3).Draw(t, "exposures") {
		at := start.Time().Add(time.Duration(rapid.IntRange(-100, 20*24).Draw(t, "hours")) * time.Hour)
		p.Exposures = append(p.Exposures, lift.Exposure{At: at, Arm: arm.Draw(t, "seen")})
	}
	for range rapid.IntRange(0, 4).Draw(t, "days") {
		s := lift.Sums{
			Clicks: rapid.Int64Range(0, 1e6).Draw(t, "clicks"), Conversions: rapid.Int64Range(0, 3).Draw(t, "conversions"),
			Revenue: map[string]lift.Money{},
		}
		if s.Conversions > 0 {
			currency := rapid.SampledFrom([]string{"EUR", "USD", ""}).Draw(t, "currency")
			s.Revenue[currency] = lift.MoneyOf(rapid.Float64Range(-1e13, 1e13).Draw(t, "amount"))
		}
		p.Days[start+lift.Day(rapid.IntRange(-40, 20).Draw(t, "day"))] = s
	}
	return p
}

// However people are divided into parts, and in whatever order they and the parts come, also through JSON, the tally
// and the report are the same to the last bit.
func TestTalliesMergeExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := question(
			rapid.SampledFrom([]lift.Metric{lift.Clicks, lift.Conversions, lift.Revenue}).Draw(t, "metric"),
			rapid.SampledFrom([]lift.Population{lift.Active, lift.Exposed}).Draw(t, "population"))
		people := rapid.SliceOfN(rapid.Custom(randomPerson), 0, 30).Draw(t, "people")
		whole := tallyOf(t, q, people...)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rng.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
		parts := make([]*lift.Tally, rapid.IntRange(1, 5).Draw(t, "parts"))
		for i := range parts {
			parts[i] = tallyOf(t, q)
		}
		for _, p := range people {
			parts[rng.IntN(len(parts))].Add(p)
		}
		merged := tallyOf(t, q)
		for _, part := range parts {
			var read lift.Tally
			if err := json.Unmarshal([]byte(text(t, part)), &read); err != nil {
				t.Fatal(err)
			}
			if err := merged.Merge(&read); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(text(t, whole), text(t, merged)); diff != "" {
			t.Fatalf("the tally (-whole +merged):\n%s", diff)
		}
		if diff := cmp.Diff(text(t, whole.Report()), text(t, merged.Report())); diff != "" {
			t.Fatalf("the report (-whole +merged):\n%s", diff)
		}
	})
}

func TestTalliesOfOtherQuestionsDoNotMerge(t *testing.T) {
	a := tallyOf(t, question(lift.Clicks, lift.Active))
	if err := a.Merge(tallyOf(t, question(lift.Revenue, lift.Active))); err == nil {
		t.Error("tallies of clicks and of revenue merged")
	}
}

func day(n int, clicks, conversions int64, revenue map[string]lift.Money) map[lift.Day]lift.Sums {
	return map[lift.Day]lift.Sums{start + lift.Day(n): {Clicks: clicks, Conversions: conversions, Revenue: revenue}}
}

func seen(arm string, days ...int) (all []lift.Exposure) {
	for _, d := range days {
		all = append(all, lift.Exposure{At: (start + lift.Day(d)).Time().Add(time.Hour), Arm: arm})
	}
	return all
}

// Each person counts once, in the arm that they saw first, by the population.
func TestWhoCounts(t *testing.T) {
	people := []lift.Person{
		{Arm: "B", Exposures: append(seen("B", 5), seen("control", 3)...), Days: day(3, 1, 0, nil)}, // crossed: in control
		{Arm: "B", Exposures: seen("B", 3, 5), Days: day(4, 10, 0, nil)},                            // two tokens
		{Arm: "B", Days: day(2, 100, 0, nil)},                                                       // active, never exposed
		{Arm: "B", Exposures: seen("B", 6), Days: day(5, 1000, 0, nil)},                             // clicked before
		{Arm: "B", Exposures: seen("B", 6)},                                                         // exposed, not active
		{Arm: "B", Exposures: seen("control", 20), Days: day(2, 0, 0, nil)},                         // exposed after the report
		{Days: day(2, 1e6, 0, nil)},                                                                 // in no arm
		{Arm: "B", Days: day(-2, 1e6, 0, nil)},                                                      // active before it alone
		{Arm: "old", Days: day(2, 1e6, 0, nil)},                                                     // in an arm of the past
	}
	for population, want := range map[lift.Population]string{
		lift.Active:  "5 people, 1 crossed; control: 1 users, 1 exposed, 1 clicks; B: 4 users, 2 exposed, 1110 clicks",
		lift.Exposed: "4 people, 1 crossed; control: 1 users, 1 exposed, 1 clicks; B: 3 users, 3 exposed, 10 clicks",
	} {
		r := tallyOf(t, question(lift.Clicks, population), people...).Report()
		got := fmt.Sprintf("%d people, %d crossed", r.People, r.Crossed)
		for _, a := range r.Arms {
			got += fmt.Sprintf("; %s: %d users, %d exposed, %d clicks", a.Name, a.Users, a.Exposed, a.Clicks)
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", population, got, want)
		}
	}
}

// shop returns people of whom each hundredth or so buys, in B for so much more.
func shop(control, b int, more float64) (people []lift.Person) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range control + b {
		p := lift.Person{Arm: "control", Exposures: seen("control", i%14)}
		amount := 50.0
		if i >= control {
			p.Arm, p.Exposures, amount = "B", seen("B", i%14), amount*(1+more)
		}
		if rng.IntN(10) == 0 {
			paid := map[string]lift.Money{"EUR": lift.MoneyOf(amount * (0.5 + rng.Float64()))}
			p.Days = day(i%14, 2, 1, paid)
		}
		people = append(people, p)
	}
	return people
}

func TestWords(t *testing.T) {
	whale := lift.Person{Arm: "B", Exposures: seen("B", 1), Days: day(2, 0, 1, map[string]lift.Money{"EUR": lift.MoneyOf(1e6)})}
	dollars := lift.Person{Arm: "B", Exposures: seen("B", 1), Days: day(2, 0, 1, map[string]lift.Money{"USD": lift.MoneyOf(10)})}
	for name, test := range map[string]struct {
		metric lift.Metric
		people []lift.Person
		want   string
	}{
		"nobody": {lift.Revenue, nil, "No user is in this experiment yet."},
		"none buys": {lift.Conversions, []lift.Person{{Arm: "B", Exposures: seen("B", 1)}},
			"Arm B or control has no conversions yet: not decided."},
		"few buy": {lift.Conversions, shop(500, 500, 0),
			"Arm B or control has fewer than 100 users with conversions: not decided. " +
				"At this traffic, a difference of 5 % takes more than ten years to show."},
		"open": {lift.Revenue, shop(5000, 5000, 0.03),
			"Arm B earned 4.3 % more per user than control; between -14 % and +26 %: not decided. " +
				"At this traffic, 423 more days would show a difference of 5 %."},
		"better": {lift.Revenue, shop(5000, 5000, 0.5),
			"Arm B earned 52 % more per user than control; between +25 % and +84 %: decided, more than control."},
		"worse": {lift.Revenue, shop(5000, 5000, -0.5),
			"Arm B earned 49 % less per user than control; between -58 % and -39 %: decided, less than control."},
		"uneven": {lift.Revenue, shop(4600, 5400, 0.5),
			"The users are not divided as the weights say: arm control has 4,600 of 10,000 users, and should have about " +
				"5,000. By chance this happens in fewer than 1 of 1,000 experiments. Find the cause: until then this " +
				"experiment shows nothing."},
		"a whale, and one who pays in dollars": {lift.Revenue, append(shop(5000, 5000, 0.03), whale, dollars),
			"Arm B earned 4.6 % more per user than control; between -14 % and +27 %: not decided. " +
				"At this traffic, 423 more days would show a difference of 5 %. " +
				"What a user has beyond 78.64 EUR does not count (1 user). Only revenue in EUR counts."},
	} {
		got := tallyOf(t, question(test.metric, lift.Exposed), test.people...).Report().Words
		if got != test.want {
			t.Errorf("%s: %s\nwant: %s", name, got, test.want)
		}
	}
}

// Of 1,000 people 54 % in an arm are no reason to doubt the report, of 10,000 they are. Then nothing is decided.
func TestSampleRatio(t *testing.T) {
	for _, test := range []struct {
		control, b int
		ok         bool
	}{{540, 460, true}, {4600, 5400, false}} {
		r := tallyOf(t, question(lift.Conversions, lift.Exposed), shop(test.control, test.b, 0)...).Report()
		if r.SampleRatio.OK != test.ok {
			t.Errorf("%d and %d: %+v", test.control, test.b, r.SampleRatio)
		}
	}
	r := tallyOf(t, question(lift.Revenue, lift.Exposed), shop(4600, 5400, 0.5)...).Report()
	if l := r.Lift[0]; *l.Low <= 0 || l.Decided {
		t.Errorf("decided in spite of the sample ratio: %s", text(t, r))
	}
}

func TestReportAsJSON(t *testing.T) {
	euros := map[string]lift.Money{"EUR": lift.MoneyOf(12.5), "USD": lift.MoneyOf(3)}
	r := tallyOf(t, question(lift.Revenue, lift.Exposed),
		lift.Person{Exposures: seen("control", 2)},
		lift.Person{Exposures: seen("control", 1, 3), Days: day(3, 2, 1, euros)},
		lift.Person{Exposures: append(seen("B", 1), seen("control", 2)...), Days: day(3, 0, 1, euros)},
	).Report()
	r.Lift[0].Relative, r.Series[0].Relative = nil, nil // 1, to the last digit or not
	r.SampleRatio.P = 1
	const want = `{"experiment":"checkout","from":"2026-11-01","to":"2026-11-14","metric":"revenue","currency":"EUR",` +
		`"population":"exposed","people":3,"crossed":1,"days":14,"arms":[` +
		`{"name":"control","users":2,"expected":1.5,"exposed":2,"clicks":2,"conversions":1,` +
		`"revenue":{"EUR":12.5,"USD":3},"perUser":6.25,"attributed":{"conversions":0,"revenue":{},"position":null,"positioned":0}},` +
		`{"name":"B","users":1,"expected":1.5,"exposed":1,"clicks":0,"conversions":1,` +
		`"revenue":{"EUR":12.5,"USD":3},"perUser":12.5,"attributed":{"conversions":0,"revenue":{},"position":null,"positioned":0}}],` +
		`"lift":[{"arm":"B","over":"control","metric":"revenue","relative":null,"low":null,"high":null,"decided":false,` +
		`"explained":0}],"series":[{"day":"2026-11-14","arm":"B","relative":null,"low":null,"high":null}],"sampleRatio":{"p":1,"ok":true},"power":{"days":null,"for":0.05},"bound":null,` +
		`"words":"Arm B or control has fewer than 100 users with revenue: not decided. ` +
		`At this traffic, a difference of 5 % takes more than ten years to show. Only revenue in EUR counts."}`
	if diff := cmp.Diff(want, text(t, r)); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}
}

// Several arms share the chance of a wrong decision, so that their intervals are wider.
func TestArmsShareTheChance(t *testing.T) {
	people := shop(5000, 5000, 0.1)
	two := tallyOf(t, question(lift.Revenue, lift.Exposed), people...).Report()
	q := question(lift.Revenue, lift.Exposed)
	q.Arms = append(q.Arms, lift.Arm{Name: "C", Weight: 0.01})
	three := tallyOf(t, q, people...).Report()
	a, b := two.Lift[0], three.Lift[0]
	if *a.Relative != *b.Relative || *b.Low >= *a.Low || *b.High <= *a.High || len(three.Lift) != 2 {
		t.Errorf("two arms %s, three %s", text(t, two), text(t, three))
	}
}
