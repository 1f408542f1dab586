package ranker

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestMostCounted compares the list with a sort of all counts, many of which are equal.
func TestMostCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, maxPopular, maxPopular + 1, 10 * maxPopular} {
		counts := map[string]float64{}
		for i := range n {
			counts[fmt.Sprint("o", i)] = float64(random.IntN(50))
		}
		want := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
		})
		if got := mostCounted(counts); !slices.Equal(got, want[:min(n, maxPopular)]) {
			t.Errorf("of %d objects: %d in another order", n, len(got))
		}
	}
}
