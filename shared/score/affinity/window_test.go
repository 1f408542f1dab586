package affinity_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// windows are what TestWindow looks at, each with its first ms and times on
// either side of its ends.
var windows = map[string]struct {
	window  affinity.Window
	from    int64
	inside  []int64
	outside []int64
}{
	"retention": {
		window:  affinity.Window{Now: 10 * dayMS, RetentionDays: 3},
		from:    7*dayMS + 1,
		inside:  []int64{7*dayMS + 1, 10 * dayMS},
		outside: []int64{7 * dayMS, 10*dayMS + 1, 0, -1},
	},
	"no limit": {
		window:  affinity.Window{Now: 10},
		from:    math.MinInt64,
		inside:  []int64{math.MinInt64, -1, 0, 10},
		outside: []int64{11, math.MaxInt64},
	},
	"since": {
		window:  affinity.Window{Now: 10 * dayMS, RetentionDays: 3, Since: 9 * dayMS},
		from:    9 * dayMS,
		inside:  []int64{9 * dayMS, 10 * dayMS},
		outside: []int64{9*dayMS - 1, 7*dayMS + 1, 10*dayMS + 1},
	},
	"since before the retention, deleted": {
		window:  affinity.Window{Now: 10 * dayMS, RetentionDays: 3, Since: dayMS, DeletedUntil: 8 * dayMS},
		from:    8*dayMS + 1,
		inside:  []int64{8*dayMS + 1},
		outside: []int64{8 * dayMS, dayMS},
	},
	"no limit, deleted": {
		window:  affinity.Window{Now: 10, DeletedUntil: 4},
		from:    5,
		inside:  []int64{5, 10},
		outside: []int64{math.MinInt64, 4, 11},
	},
	"deleted before the retention": {
		window:  affinity.Window{Now: 10 * dayMS, RetentionDays: 3, DeletedUntil: dayMS},
		from:    7*dayMS + 1,
		inside:  []int64{7*dayMS + 1},
		outside: []int64{7 * dayMS},
	},
	"everything deleted": {
		window:  affinity.Window{Now: 10, DeletedUntil: math.MaxInt64},
		from:    math.MaxInt64,
		outside: []int64{math.MinInt64, 0, 10, 11, math.MaxInt64},
	},
	"retention longer than time": {
		window:  affinity.Window{Now: 10, RetentionDays: math.MaxInt},
		from:    math.MinInt64,
		inside:  []int64{math.MinInt64, 10},
		outside: []int64{11},
	},
	"the longest retention there is": {
		window:  affinity.Window{Now: 0, RetentionDays: math.MaxInt64 / int(dayMS)},
		from:    1 - math.MaxInt64/dayMS*dayMS,
		inside:  []int64{1 - math.MaxInt64/dayMS*dayMS, 0},
		outside: []int64{math.MinInt64, 1},
	},
	"the beginning of time": {
		window:  affinity.Window{Now: math.MinInt64 + 5, RetentionDays: 1},
		from:    math.MinInt64,
		inside:  []int64{math.MinInt64, math.MinInt64 + 5},
		outside: []int64{math.MinInt64 + 6, 0},
	},
	"the end of time": {
		window:  affinity.Window{Now: math.MaxInt64, RetentionDays: 1},
		from:    math.MaxInt64 - dayMS + 1,
		inside:  []int64{math.MaxInt64},
		outside: []int64{math.MaxInt64 - dayMS},
	},
}

func TestWindow(t *testing.T) {
	for name, test := range windows {
		t.Run(name, func(t *testing.T) {
			if from := test.window.From(); from != test.from {
				t.Errorf("from %d, want %d", from, test.from)
			}
			for _, at := range test.inside {
				if !test.window.Contains(at) {
					t.Errorf("%d should be inside", at)
				}
			}
			for _, at := range test.outside {
				if test.window.Contains(at) {
					t.Errorf("%d should be outside", at)
				}
			}
		})
	}
}

// TestExtremeTimes holds scorer and formula together where sums of times overflow.
func TestExtremeTimes(t *testing.T) {
	extreme := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 0, -1, 1}))
	rapid.Check(t, func(t *rapid.T) {
		s := drawStrategy(t)
		w := affinity.Window{
			Now:           extreme.Draw(t, "now"),
			RetentionDays: rapid.SampledFrom([]int{0, 1, math.MaxInt64 / int(dayMS), math.MaxInt}).Draw(t, "retention"),
			DeletedUntil:  extreme.Draw(t, "deleted until"),
		}
		events := drawEvents(t, affinity.Window{Now: now})
		for i := range events {
			events[i].Time = extreme.Draw(t, "time")
		}
		p := score(events, s, w)
		if fault := differ(p, affinity.Reference(events, s, w), 1e-9); fault != "" {
			t.Fatal(fault)
		}
		for _, e := range events {
			inside := e.Time <= w.Now && (w.DeletedUntil == 0 || e.Time > w.DeletedUntil) &&
				(w.RetentionDays != 1 || uint64(w.Now)-uint64(e.Time) < uint64(dayMS))
			if w.RetentionDays <= 1 && w.Contains(e.Time) != inside {
				t.Fatalf("%d in %+v: %v", e.Time, w, !inside)
			}
		}
		plain := s
		plain.HalfLives = nil
		sums := scores(score(events, plain, w))
		for name, aged := range scores(p) {
			if sum := sums[name]; len(sum) == 0 || slices.Max(aged) > sum[0]*(1+1e-9) {
				t.Fatalf("%s: %v is more than the plain sum %v", name, aged, sum)
			}
		}
		if p.Until <= w.Now && w.Now < math.MaxInt64 {
			t.Fatalf("computed at %d, but valid only until %d", w.Now, p.Until)
		}
		if fault := malformed(p.At(extreme.Draw(t, "later"))); fault != "" {
			t.Fatal(fault)
		}
	})
}
