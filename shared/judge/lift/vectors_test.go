package lift

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func near(got, want, relative float64) bool { return math.Abs(got-want) <= relative*math.Abs(want) }

// The figures come from a program in Python that has the formulas in another form.
func TestMultiplierVectors(t *testing.T) {
	for people, want := range map[float64]float64{
		500: 3.855054633530311, 1000: 3.3638877257827806, 5000: 3.0352089903762534, 100_000: 3.336857533786599,
		6e6: 3.8928994819597253,
	} {
		got := multiplier(people, 0.05)
		if !near(got, want, 1e-12) {
			t.Errorf("multiplier(%v) = %v, want %v", people, got, want)
		}
		if once := normal(0.975); got > 2*once {
			t.Errorf("multiplier(%v) = %v is more than twice %v", people, got, once)
		}
	}
	if got := multiplier(100_000, 0.025); !near(got, 3.5632617475306736, 1e-12) {
		t.Errorf("for two arms: %v", got)
	}
	for people := 100.0; people < 1e9; people *= 1.1 {
		if got := multiplier(people, 0.05); got < 3.03 {
			t.Errorf("multiplier(%v) = %v, want at least 3.03", people, got)
		}
	}
}

func TestSampleRatioVectors(t *testing.T) {
	halves := []float64{1, 1}
	for _, test := range []struct {
		people  []int64
		weights []float64
		want    float64
	}{
		{[]int64{540, 460}, halves, 0.011412036386001656},
		{[]int64{550, 450}, halves, 0.0015654022580025488},
		{[]int64{5200, 4800}, halves, 6.334248366623977e-05},
		{[]int64{4600, 5400}, halves, 1.2441921148543513e-15},
		{[]int64{3, 17}, halves, 0.0025768280029296875}, // exact from here on
		{[]int64{12, 88}, []float64{0.05, 0.95}, 0.004274182466365913},
		{[]int64{88, 12}, []float64{0.95, 0.05}, 0.004274182466365913},
		{[]int64{2, 98}, []float64{1, 19}, 0.2462234598054998},
		{[]int64{0, 0}, halves, 1},
		{[]int64{10, 0}, []float64{1, 0}, 1},
		{[]int64{10, 1}, []float64{1, 0}, 0}, // nobody could come into this arm
	} {
		if got := sampleRatio(test.people, test.weights); !near(got, test.want, 1e-6) {
			t.Errorf("sampleRatio(%v, %v) = %v, want %v", test.people, test.weights, got, test.want)
		}
	}
	for freedom, want := range map[int]float64{
		1: math.Erfc(math.Sqrt(9.5 / 2)), 2: 0.008651695203119859, 3: 0.023331360430827956, 4: 0.04974724741793737,
		5: 0.0907073917040338,
	} {
		if got := chiSquare(9.5, freedom); !near(got, want, 1e-9) {
			t.Errorf("chiSquare(9.5, %d) = %v, want %v", freedom, got, want)
		}
	}
	// The exact test and the approximate one agree where both hold.
	if exact, square := binomialTest(5100, 10_000, 0.5), sampleRatio([]int64{5100, 4900}, halves); !near(exact, square, 0.03) {
		t.Errorf("5,100 of 10,000: exact %v, chi-square %v", exact, square)
	}
	// Of three arms one has nobody: exact, as few are expected in each.
	if p := sampleRatio([]int64{30, 30, 0}, []float64{1, 1, 1}); p > 1e-9 {
		t.Errorf("an empty arm of three: %v", p)
	}
}

// Every amount lies in its bucket, the buckets are in order, and one holds amounts that differ by a quarter at most.
func TestBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, 1<<60).Draw(t, "amount") >> rapid.IntRange(0, 60).Draw(t, "shift")
		b := bucket(v)
		if v > end(b) || b > 0 && v <= end(b-1) {
			t.Fatalf("%d is in bucket %d of %d to %d", v, b, end(b-1)+1, end(b))
		}
		if bucket(end(b)) != b || bucket(end(b)+1) != b+1 || bucket(-v) != -b {
			t.Fatalf("bucket %d: its end is %d", b, end(b))
		}
		if float64(end(b)) > 1.25*float64(v)+1 {
			t.Fatalf("%d counts %d at the end of its bucket", v, end(b))
		}
	})
}

// The moments are those of the bounded amounts, one by one.
func TestMomentsByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom([]int64{0, 1, 3, 40, 1000, 77_777, -9, -5000}).Draw(t, "amount") *
				rapid.Int64Range(1, 5).Draw(t, "times")
		})
		ys := rapid.SliceOfN(amount, 2, 40).Draw(t, "now")
		xs := rapid.SliceOfN(amount, len(ys), len(ys)).Draw(t, "before")
		b := bounds{bucket(rapid.Int64Range(1, 1<<18).Draw(t, "bound")), bucket(rapid.Int64Range(1, 1<<18).Draw(t, "bound before"))}
		s := sums{}
		var y, x, yy, xx, xy float64
		cut := func(v int64, b int16) float64 { return float64(max(-end(b), min(v, end(b)))) }
		for i := range ys {
			s.add(ys[i], xs[i])
			y += cut(ys[i], b.now)
			x += cut(xs[i], b.before)
		}
		n := float64(len(ys))
		for i := range ys {
			dy, dx := cut(ys[i], b.now)-y/n, cut(xs[i], b.before)-x/n
			yy, xx, xy = yy+dy*dy/(n-1), xx+dx*dx/(n-1), xy+dx*dy/(n-1)
		}
		m := s.moments(int64(len(ys)), b)
		for name, pair := range map[string][2]float64{
			"y": {m.y, y / n}, "x": {m.x, x / n}, "yy": {m.yy, yy}, "xx": {m.xx, xx}, "xy": {m.xy, xy},
		} {
			if !near(pair[0], pair[1], 1e-9) && math.Abs(pair[0]-pair[1]) > 1e-6 {
				t.Fatalf("%s = %v, want %v", name, pair[0], pair[1])
			}
		}
	})
}

// At most one in a thousand of the people with an amount have theirs cut, and no bucket less would do.
func TestBound(t *testing.T) {
	s := sums{}
	for i := range int64(5000) {
		s.add(1+i%3, 0)
	}
	for range 5 {
		s.add(1000, 0)
	}
	b, beyond := boundsOf([]sums{s, {}})
	if end(b.now) != 3 || beyond != 5 || b.before != 0 {
		t.Errorf("bound %d, before %d, %d beyond it, want 3, 0 and 5", end(b.now), b.before, beyond)
	}
	s.add(1000, 0)
	if b, beyond := boundsOf([]sums{s}); b.now != bucket(1000) || beyond != 0 {
		t.Errorf("six of 5,006: bound %d, %d beyond it, want none", end(b.now), beyond)
	}
}

// vectorTally has 6,000 people, of whom every third is in the control.
func vectorTally(t *testing.T) *Tally {
	t.Helper()
	tally, err := NewTally(Question{
		Experiment: "vector", Arms: []Arm{{"control", 1}, {"B", 2}}, Metric: Clicks, Population: Active, To: 9,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(6000) {
		r, x, y := (i*7919+13)%1000, (i*104729+7)%997, int64(0)
		if r < 300 {
			y = r*r%97 + x/40 + 3*one(i%3 != 0)
		}
		if x%2 == 0 {
			x = 0
		}
		tally.Add(Person{
			Arm: map[bool]string{true: "control", false: "B"}[i%3 == 0], Days: map[Day]Sums{3: {Clicks: y}, -5: {Clicks: x / 10}},
		})
	}
	return tally
}

// The figures come from a program in Python that computes them with fractions, from a gradient.
func TestReportVector(t *testing.T) {
	r := vectorTally(t).Report()
	l := r.Lift[0]
	for name, pair := range map[string][2]float64{
		"relative": {*l.Relative, 0.051552293190216814}, "low": {*l.Low, -0.09440012519681888},
		"high": {*l.High, 0.22102736106707713}, "explained": {l.Explained, 0.001078710192151111},
		"days":     {float64(*r.Power.Days), math.Ceil(178.4112544048331 - 10)},
		"per user": {r.Arms[1].PerUser, 74600.0 / 4000}, "ratio": {r.SampleRatio.P, 1},
	} {
		if !near(pair[0], pair[1], 1e-9) {
			t.Errorf("%s = %v, want %v", name, pair[0], pair[1])
		}
	}
	want := "Arm B got 5.2 % more clicks per user than control; between -9.4 % and +22 %: not decided. " +
		"At this traffic, 169 more days would show a difference of 5 %."
	if r.Words != want {
		t.Errorf("words: %s\nwant:  %s", r.Words, want)
	}
}

// If the days before say exactly what a person does, only the true lift remains.
func TestAdjustmentRemovesWhatIsKnown(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	arm, control := sums{}, sums{}
	for range 5000 {
		for _, s := range []sums{arm, control} {
			x := rng.Int64N(1000)
			s.add(2*x+1000, x)
		}
	}
	b, _ := boundsOf([]sums{arm, control})
	e, ok := compare(arm.moments(5000, b), control.moments(5000, b))
	if low, high := e.interval(alpha); !ok || e.removed < 0.999 || low > 0 || high < 0 || high-low > 1e-3 {
		t.Errorf("lift %v, from %v to %v, %v of the variance removed", e.relative(), low, high, e.removed)
	}
}

func TestSizeVectors(t *testing.T) {
	for _, test := range []struct {
		test                   Test
		people, days, once     float64
		after2, after4, weeks8 float64
	}{
		{Test{Base: 0.02, Effect: 0.05, Daily: 4000, Arms: 2, Control: 0.5},
			1676105.3445134165, 419.0263361283541, 157.6367722776339,
			0.27440241065113985, 0.1917943959994132, 0.13535193926169845},
		{Test{Base: 0.01, Spread: 2.9, Effect: 0.1, Daily: 100_000, Arms: 2, Control: 0.5},
			9053835.865274845, 90.53835865274844, 31.00927085366187,
			0.26549648600137915, 0.18515281212307216, 0.13026386225381767},
	} {
		n, err := Size(test.test)
		if err != nil {
			t.Fatal(err)
		}
		if !near(float64(n.People), test.people, 2e-4) || !near(float64(n.Days), math.Ceil(test.days), 1e-3) ||
			float64(n.OnceDays) != math.Ceil(test.once) {
			t.Errorf("Size(%+v) = %+v, want %v people", test.test, n, test.people)
		}
		for i, want := range []float64{test.after2, test.after4, test.weeks8} {
			if !near(n.Shows[i].Effect, want, 1e-9) {
				t.Errorf("Size(%+v) shows %+v, want %v", test.test, n.Shows[i], want)
			}
		}
	}
	for _, bad := range []Test{
		{}, {Base: 2, Effect: 0.05, Daily: 4000, Arms: 2, Control: 0.5},
		{Base: 0.5, Effect: 1.5, Daily: 4000, Arms: 2, Control: 0.5}, {Base: 0.02, Effect: 0.05, Daily: 0, Arms: 2, Control: 0.5},
		{Base: 0.02, Effect: 0.05, Daily: 4000, Arms: 1, Control: 0.5}, {Base: 0.02, Effect: 0.05, Daily: 4000, Arms: 2, Control: 1},
		{Base: 0.02, Effect: 0.0001, Daily: 10, Arms: 2, Control: 0.5}, {Base: math.NaN(), Effect: 0.05, Daily: 4000, Arms: 2, Control: 0.5},
	} {
		if n, err := Size(bad); err == nil {
			t.Errorf("Size(%+v) = %+v, want an error", bad, n)
		}
	}
}

// Of the experiments with the difference that a test was sized for, four of five show it on the last day.
func TestSizeIsEnough(t *testing.T) {
	plan := Test{Base: 0.05, Effect: 0.5, Daily: 1000, Arms: 2, Control: 0.5}
	n, err := Size(plan)
	if err != nil {
		t.Fatal(err)
	}
	shown, runs := 0, 400
	for i := range runs {
		rng := rand.New(rand.NewPCG(uint64(i), 3))
		tally, err := NewTally(Question{Arms: []Arm{{"control", 1}, {"B", 1}}, Metric: Conversions, Population: Active})
		if err != nil {
			t.Fatal(err)
		}
		for arm, share := range []float64{0.05, 0.075} {
			tally.Arms[arm].Users = n.People / 2
			for range binomial(rng, int(n.People/2), share) {
				tally.Arms[arm].sums("").add(1, 0)
			}
		}
		shown += int(one(tally.Report().Lift[0].Decided))
	}
	if share := float64(shown) / float64(runs); share < 0.76 || share > 0.86 {
		t.Errorf("%d of %d show it, want about 0.8", shown, runs)
	}
}
