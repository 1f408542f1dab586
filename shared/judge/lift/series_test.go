package lift

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/local/must"
)

// Each point of a series is what a report of the days up to it says without the weeks before, and parts of a series
// merge to the whole.
func TestSeries(t *testing.T) {
	q := Question{Experiment: "e", Arms: []Arm{{"control", 1}, {"new", 1}}, Start: 100, From: 100, To: 130,
		Metric: Revenue, Population: Active}
	r := rand.New(rand.NewPCG(7, 1))
	var people []Person
	for range 3_000 {
		p := Person{Arm: []string{"control", "new"}[r.IntN(2)], Days: map[Day]Sums{}}
		for range r.IntN(4) {
			p.Days[Day(72+r.IntN(60))] = Sums{Clicks: r.Int64N(3), Revenue: map[string]Money{
				[]string{"EUR", "USD"}[r.IntN(2)]: MoneyOf(float64(r.IntN(90)))}}
		}
		people = append(people, p)
	}
	whole, err := NewSeries(q, 4)
	must.Succeed(t, err)
	merged, _ := NewSeries(q, 4)
	part, _ := NewSeries(q, 4)
	tally, _ := NewTally(q)
	for i, p := range people {
		whole.Add(p)
		tally.Add(p)
		if part.Add(p); i%1_000 == 999 {
			text, err := json.Marshal(part)
			must.Succeed(t, err)
			read := &Series{}
			must.Succeed(t, json.Unmarshal(text, read))
			must.Succeed(t, merged.Merge(read))
			part, _ = NewSeries(q, 4)
		}
	}
	report := tally.Report()
	last := report.Series
	whole.Into(&report)
	got := report.Series
	merged.Into(&report)
	if diff := cmp.Diff(got, report.Series); diff != "" {
		t.Errorf("merged (-whole +got):\n%s", diff)
	}
	var want []Point
	for _, to := range []Day{100, 107, 115, 122} {
		at := q
		at.To, at.Plain, at.Currency = to, true, report.Currency
		one, _ := NewTally(at)
		for _, p := range people {
			one.Add(p)
		}
		want = append(want, one.Report().Series...)
	}
	if diff := cmp.Diff(append(want, last...), got); diff != "" || last[0].Day != 130 || last[0].Low == nil {
		t.Errorf("%+v (-want +got):\n%s", last, diff)
	}
	for days, points := range map[Day]int{0: 0, 1: 1, 3: 3, 4: 4, 200: 4} {
		q.To = q.From + days
		if s, err := NewSeries(q, 4); err != nil || len(s.Tallies) != points {
			t.Errorf("%d days: %d points, %v", days, len(s.Tallies), err)
		}
	}
	if err := whole.Merge(&Series{}); err == nil {
		t.Error("series of different days merge")
	}
}

// A person whose other tokens are in another arm has crossed, once they are in one.
func TestCrossedWithoutExposure(t *testing.T) {
	for _, tt := range []struct {
		arm     string
		others  []string
		crossed bool
	}{{"a", nil, false}, {"a", []string{"a", ""}, false}, {"a", []string{"", "b"}, true}, {"", []string{"b"}, false}} {
		if _, _, _, crossed := (Person{Arm: tt.arm, Others: tt.others}).arm(0); crossed != tt.crossed {
			t.Errorf("%+v: %t", tt, crossed)
		}
	}
}
