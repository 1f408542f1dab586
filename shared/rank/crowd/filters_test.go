package crowd_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/crowd"
)

// While document frequencies fit the memory of a counter they equal brute force. When
// they do not, they are too low by its bound at most, and take no more than that memory.
func TestFilterCounter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 9))
	for _, objects := range []int{0, 1, 50, 3_000} {
		const fits, most = 1 << 30, 20_000
		want, exact, bounded := map[event.Filter]int{}, crowd.NewFilterCounter(fits), crowd.NewFilterCounter(most)
		for i := range objects {
			filters := []event.Filter{{Facet: "id", Value: fmt.Sprint(i)}, {Facet: "half", Value: fmt.Sprint(i % 2)}}
			for range rnd.IntN(8) {
				filters = append(filters, event.Filter{Facet: "tag", Value: fmt.Sprint(int(rnd.ExpFloat64() * 40))})
			}
			crowd.CountFilters(want, filters)
			exact.Add(filters)
			bounded.Add(filters)
			if size := (&crowd.Index{Frequencies: bounded.Frequencies()}).Size(); size > most+256 {
				t.Fatalf("after %d objects: %d bytes", i, size)
			}
		}
		if !maps.Equal(exact.Frequencies(), want) || exact.Bound() != 0 {
			t.Errorf("%d objects: %d frequencies, bound %d; want all %d", objects, len(exact.Frequencies()), exact.Bound(), len(want))
		}
		if (bounded.Bound() > 0) != (objects == 3_000) || bounded.Bound() > objects/10 {
			t.Errorf("%d objects: bound %d", objects, bounded.Bound())
		}
		for f, n := range want {
			if got := bounded.Frequencies()[f]; got > n || got < n-bounded.Bound() {
				t.Errorf("%d objects: %v counts %d of %d, bound %d", objects, f, got, n, bounded.Bound())
			}
		}
	}
}
