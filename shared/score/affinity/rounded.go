package affinity

import "math"

// Rounded returns a score with 12 significant digits. Scores that are equal by the
// formula differ in their last bits where they were computed in different ways. Rounded,
// they are equal, and objectIDs decide. A number rounds by itself, so the order of two
// rounded scores does not depend on what they are compared with, and rounding never
// exchanges two scores.
func Rounded(score float64) float64 {
	size, scale := math.Abs(score), 1e12
	switch {
	case size >= 0.1 && size < 1:
	case size >= 1 && size < 10:
		scale = 1e11
	case size >= 0.01 && size < 0.1:
		scale = 1e13
	case size > 1e-290 && size < 1e290:
		scale = math.Pow10(11 - int(math.Floor(math.Log10(size))))
	default: // 0, not finite, or where a scale would not be
		return score
	}
	return math.RoundToEven(score*scale) / scale
}
