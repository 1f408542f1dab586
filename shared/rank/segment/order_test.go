package segment_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/rank/segment"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// decays draws a half-life of a minute to ten years, or none.
func decays(t *rapid.T) (segment.Decay, float64) {
	minutes := rapid.Int64Range(0, 3650*24*60).Draw(t, "minutes")
	if minutes == 0 {
		return segment.Decay{}, math.Inf(1)
	}
	h, err := strategy.ParseHalfLife(rapid.SampledFrom([]string{"1m", "45m", "12h", "7d", "30d", "3650d"}).Draw(t, "half-life"))
	if err != nil {
		t.Fatal(err)
	}
	return segment.DecayOf(h), h.Millis()
}

// A score keeps its Order while it decays, within the rounding of 36 bits.
func TestOrderStaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, h := decays(t)
		score := rapid.Float64Range(1, 1e9).Draw(t, "score")
		at, ms := rapid.Int64Range(0, 3*t0).Draw(t, "at"), rapid.Int64Range(0, 365*day).Draw(t, "ms")
		decayed := score * math.Exp2(-float64(ms)/h)
		was, is := d.Order(score, at), d.Order(decayed, at+ms)
		if decayed <= segment.Least {
			if is != segment.NoOrder {
				t.Fatalf("a score of %g has Order %d", decayed, is)
			}
			return
		}
		if diff := was - is; diff < -1 || diff > 1 {
			t.Fatalf("Order %d becomes %d", was, is)
		}
		if got := d.Score(was, at+ms); math.Abs(got-decayed) > 2e-11*decayed {
			t.Fatalf("score %g, want %g", got, decayed)
		}
	})
}

func TestOrdersOfWholeNumbersAreExact(t *testing.T) {
	for n := 1.0; n < 1<<37; n = n*1.7 + 1 {
		n = math.Floor(n)
		if got := (segment.Decay{}).Score(segment.Decay{}.Order(n, t0), t0); got != n {
			t.Errorf("%v becomes %v", n, got)
		}
	}
}
