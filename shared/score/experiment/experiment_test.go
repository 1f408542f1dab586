package experiment

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// halves is a valid experiment of two arms.
func halves() Experiment {
	return Experiment{Name: "fresh", Arms: []Arm{{"control", 1, 0.5}, {"fresh", 2, 0.5}}, Coverage: 1, Seed: "fresh",
		StartAt: noon, Metric: "clicks"}
}

// weights draws weights of some arms, in steps of a tenth of a percent.
func weights(t *rapid.T, name string, arms int) []Arm {
	all, left := make([]Arm, arms), 1_000
	for i := range all {
		n := left
		if rest := arms - 1 - i; rest > 0 {
			n = rapid.IntRange(1, left-rest).Draw(t, name)
		}
		all[i], left = Arm{Name: string(rune('a' + i)), Strategy: 1, Weight: float64(n) / 1_000}, left-n
	}
	return all
}

// ends returns where the ranges of the arms begin and end, in thousandths of a percent, by integers.
func ends(e Experiment) (ranges [][2]int64) {
	const percent, thousandths = 100, 1_000
	start := int64(0)
	for _, a := range e.Arms {
		weight := int64(a.Weight*thousandths + 0.5)
		ranges = append(ranges, [2]int64{start * percent, start*percent + int64(e.Coverage*percent+0.5)*weight})
		start += weight
	}
	return ranges
}

// Arms are the ranges of GrowthBook: [start, start + coverage x weight), starts cumulative by weight. A change moves
// only those whose number lies in another range then. A larger coverage moves nobody between arms.
func TestArmsAreRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arms := rapid.IntRange(2, 5).Draw(t, "arms")
		coverage := rapid.IntRange(0, 100)
		from := halves()
		from.Arms, from.Coverage = weights(t, "from", arms), float64(coverage.Draw(t, "coverage"))/100
		to := from
		to.Arms, to.Coverage = weights(t, "to", arms), float64(coverage.Draw(t, "other"))/100
		wider := from
		wider.Coverage = max(from.Coverage, to.Coverage)
		for range 50 {
			unit := rapid.StringMatching(`[A-Za-z0-9_-]{1,40}`).Draw(t, "unit")
			n := int64(hash(from.Seed, unit)*steps+0.5) * 10
			was, before := from.Arm(unit)
			is, after := to.Arm(unit)
			for _, x := range []struct {
				Experiment
				arm int
				ok  bool
			}{{from, was, before}, {to, is, after}} {
				want, in := 0, false
				for i, r := range ends(x.Experiment) {
					if r[0] <= n && n < r[1] {
						want, in = i, true
					}
				}
				if want != x.arm || in != x.ok {
					t.Fatalf("%s, of %d, is in arm %d, %t, of %+v; want %d, %t", unit, n, x.arm, x.ok, x.Experiment, want, in)
				}
			}
			if wide, ok := wider.Arm(unit); before && (!ok || wide != was) {
				t.Fatalf("%s leaves arm %d under a larger coverage: %+v, %+v", unit, was, from, wider)
			}
		}
	})
}

// TestFewestMove moves a tenth of the weight from one arm to the other: a tenth of the users move, and no others.
func TestFewestMove(t *testing.T) {
	from, to := halves(), halves()
	to.Arms = []Arm{{"control", 1, 0.4}, {"fresh", 2, 0.6}}
	const users = 20_000
	moved := 0
	for i := range users {
		unit := "user-" + time.Duration(i).String()
		was, _ := from.Arm(unit)
		is, _ := to.Arm(unit)
		if was != is {
			if moved++; is == 0 {
				t.Errorf("%s moves to the arm that has become smaller", unit)
			}
		}
	}
	if moved < 1830 || moved > 2170 { // four standard deviations
		t.Errorf("%d of %d users move, want about 2000", moved, users)
	}
}

// An end of a range is compared as its decimal number, and a third lies beyond 0.3333.
func TestEndsAreRounded(t *testing.T) {
	tenth := 0.1
	if end := tenth + 2*tenth; end == 0.3 || rounded(end) != 0.3 {
		t.Errorf("%v is rounded to %v", end, rounded(end))
	}
	if third := tenth * 10 / 3; !(0.3333 < rounded(third)) {
		t.Errorf("%v is rounded to %v", third, rounded(third))
	}
}

func TestRuns(t *testing.T) {
	bounded, stopped, open := halves(), halves(), halves()
	bounded.EndAt, stopped.StoppedAt = noon.Add(time.Hour), noon.Add(time.Hour)
	for _, c := range []struct {
		e           Experiment
		after       time.Duration
		runs, ended bool
	}{
		{Experiment{}, 0, false, false},
		{open, -1, false, false}, {open, 0, true, false}, {open, 1e6 * time.Hour, true, false},
		{bounded, time.Hour - 1, true, false}, {bounded, time.Hour, false, true},
		{stopped, 0, false, true}, {stopped, 2 * time.Hour, false, true},
	} {
		if now := noon.Add(c.after); c.e.Runs(now) != c.runs || c.e.Ended(now) != c.ended {
			t.Errorf("%+v after %s: runs %t, ended %t", c.e, c.after, c.e.Runs(now), c.e.Ended(now))
		}
	}
}

func TestExperimentCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Experiment)
		want   string
	}{
		{func(*Experiment) {}, ""},
		{func(e *Experiment) { e.Arms[0].Weight, e.Arms[1].Weight = 0.4995, 0.4996 }, ""},
		{func(e *Experiment) { e.Name = "a b" }, `"a b": the name must be 1 to 64 letters, digits, _ or -`},
		{func(e *Experiment) { e.Name = "holdout" }, `"holdout": this is the name under which the users are reported who are ` +
			`held out: choose another one`},
		{func(e *Experiment) { e.Arms = e.Arms[:1] }, `"fresh": 1 arms: must be 2 to 10`},
		{func(e *Experiment) { e.Coverage = 1.1 }, `"fresh": coverage 1.1: must be from 0 to 1`},
		{func(e *Experiment) { e.Seed = "\n" }, `"fresh": seed "\n": want 1 to 64 bytes of printable text`},
		{func(e *Experiment) { e.StartAt = time.Time{} }, `"fresh": startAt is missing`},
		{func(e *Experiment) { e.EndAt = noon }, `"fresh": endAt 2026-11-30T12:00:00Z: must be after startAt, 2026-11-30T12:00:00Z`},
		{func(e *Experiment) { e.Metric = "views" }, `"fresh": metric "views": must be one of conversions, revenue, clicks`},
		{func(e *Experiment) { e.Hypothesis = strings.Repeat("x", 1001) },
			`"fresh": the hypothesis must be at most 1000 bytes of valid UTF-8`},
		{func(e *Experiment) { e.Arms[1].Name = "" }, `"fresh": arms[1]: name "": must be 1 to 64 letters, digits, _ or -`},
		{func(e *Experiment) { e.Arms[1].Name = "control" }, `"fresh": arms[0] and arms[1] both have the name "control"`},
		{func(e *Experiment) { e.Arms[1].Strategy = 0 }, `"fresh": arm "fresh": strategy 0: must be a version, 1 or more`},
		{func(e *Experiment) { e.Arms[1].Weight = 0 }, `"fresh": arm "fresh": weight 0: must be from 0.0001 to 1`},
		{func(e *Experiment) { e.Arms[1].Weight = 0.4 }, `"fresh": the weights add up to 0.9: must add up to 1`},
	} {
		e := halves()
		c.change(&e)
		got := ""
		if err := e.Check(); err != nil {
			got = strings.TrimPrefix(err.Error(), "experiment ")
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", e, got, c.want)
		}
	}
}
