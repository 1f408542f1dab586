package ranking

import "testing"

// DiversifyPlaces makes diversity fill n places at most, until the test ends.
func DiversifyPlaces(t testing.TB, n int) {
	t.Cleanup(func() { maxDiversified = MaxDiversified })
	maxDiversified = n
}
