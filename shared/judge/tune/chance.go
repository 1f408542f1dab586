package tune

import (
	"context"
	"math/rand/v2"
)

const (
	// flips is the number of random signs that chance draws for each difference.
	flips = 10_000
	// maxChance is the chance above which a gain is not recommended: that of one
	// side of a 95 % interval.
	maxChance = 0.025
)

// chance returns how often differences by user of these sizes, each as likely to be a loss
// as a gain, have a sum as high as these: the one-sided sign-flip test. An interval
// by bootstrap is too narrow where only a few of many differences are not 0, as
// when most users turn to nothing that either order shows. This test is not. The
// error is that of ctx.
func chance(ctx context.Context, differences []float64) (float64, error) {
	var moved []float64
	sum := 0.0
	for _, d := range differences {
		if d != 0 {
			moved = append(moved, d)
			sum += d
		}
	}
	rng := rand.New(rand.NewPCG(1935, uint64(len(moved))))
	const slack = 1e-12 // sums of the same numbers in another order
	reached := 1        // the order that was seen
	for range flips {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		flipped := 0.0
		var bits uint64
		for i, d := range moved {
			if i%64 == 0 {
				bits = rng.Uint64()
			}
			if bits&1 == 0 {
				flipped += d
			} else {
				flipped -= d
			}
			bits >>= 1
		}
		if flipped >= sum-slack {
			reached++
		}
	}
	return float64(reached) / (flips + 1), nil
}
