package ranking

import "math"

// sum adds up numbers. The result is the same in whatever order they come: low holds
// what rounding takes from high (Knuth's TwoSum), so that two objects that match equal
// scores in different facets have equal sums.
type sum struct{ high, low float64 }

// add adds a number. Neither it nor the sum is near the largest float.
func (s *sum) add(x float64) {
	high := s.high + x
	of := high - s.high
	s.low += (s.high - (high - of)) + (x - of)
	s.high = high
}

// addBounded adds a positive number. The sum stays finite.
func (s *sum) addBounded(x float64) {
	if s.high+x > math.MaxFloat64 {
		*s = sum{high: math.MaxFloat64}
		return
	}
	s.add(x)
}

func (s sum) value() float64 { return bounded(s.high + s.low) }
