package tune

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// By hand: of three differences all signs are plus once in 2^3.
func TestChanceByHand(t *testing.T) {
	for name, test := range map[string]struct {
		differences []float64
		want        float64
	}{
		"all gains":      {[]float64{0.1, 0, 0.2, 0.4, 0}, 1.0 / 8},
		"all losses":     {[]float64{-0.1, -0.2, -0.4}, 1},
		"one loss":       {[]float64{-0.1, 0.2, 0.4}, 2.0 / 8}, // 0.5 or 0.7
		"no differences": {[]float64{0, 0}, 1},
		"no cases":       {nil, 1},
	} {
		if got, err := chance(t.Context(), test.differences); err != nil || math.Abs(got-test.want) > 0.02 {
			t.Errorf("%s: chance = %.3f, %v, want %.3f", name, got, err, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chance(ctx, []float64{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Where gains and losses are equally likely, it is below a limit as often as the
// limit says, also if few differences are not 0.
func TestChanceIsAProbability(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const runs = 400
	low := 0
	for range runs {
		differences := make([]float64, 150)
		for i := range differences {
			if rng.Float64() < 0.1 {
				differences[i] = (rng.Float64() + 0.2) * float64(1-2*rng.IntN(2))
			}
		}
		if c, err := chance(t.Context(), differences); err != nil {
			t.Fatal(err)
		} else if c <= 0.1 {
			low++
		}
	}
	if low < runs*5/100 || low > runs*16/100 {
		t.Errorf("a chance of at most 10 %% in %d of %d runs", low, runs)
	}
}
