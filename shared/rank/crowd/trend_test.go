package crowd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/rank/crowd"
)

const (
	dayMs  = 86_400_000
	weekMs = 7 * dayMs
)

// decayed draws the counts of an object whose events come at a rate a day, and at another one in
// the last day, in a Poisson process over 90 days.
func decayed(random *rand.Rand, rate, lately float64) (count, recent float64) {
	for age := 0.0; age < 90*dayMs; {
		perDay := rate
		if age < dayMs {
			perDay = lately
		}
		age += random.ExpFloat64() * dayMs / perDay
		count += math.Exp2(-age / weekMs)
		recent += math.Exp2(-age / crowd.Recently)
	}
	return count, recent
}

// TestTrendIsAZScore draws objects with a constant rate, whose trends must be spread as those of a
// standard normal distribution, and objects with three times their rate.
func TestTrendIsAZScore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, rate := range []float64{5, 50} {
		const objects = 1500
		sum, square, high, found := 0.0, 0.0, 0, 0
		for range objects {
			count, recent := decayed(random, rate, rate)
			z := crowd.Trend(count, weekMs, recent)
			sum, square = sum+z, square+z*z
			if z > 3 {
				high++
			}
			count, recent = decayed(random, rate, 3*rate)
			if crowd.Trend(count, weekMs, recent) >= 2 {
				found++
			}
		}
		mean := sum / objects
		deviation := math.Sqrt(square/objects - mean*mean)
		t.Logf("%v events a day: mean %.3f, deviation %.3f, %d of %d above 3, %d of those with three times the events above 2",
			rate, mean, deviation, high, objects, found)
		if math.Abs(mean) > 0.06 || deviation < 0.75 || deviation > 1.1 || high > objects/100 || found < objects*3/4 {
			t.Error("want a mean near 0, a deviation near 1, few above 3, and most of the others above 2")
		}
	}
}

func TestTrendOfLittle(t *testing.T) {
	for name, z := range map[string]float64{
		"no event":                crowd.Trend(0, weekMs, 0),
		"one new event":           crowd.Trend(1, weekMs, 1),
		"events do not age":       crowd.Trend(100, math.Inf(1), 100),
		"as short as the recent":  crowd.Trend(100, crowd.Recently, 100),
		"a count that has fallen": crowd.Trend(100, weekMs, 0),
	} {
		if z >= 2 {
			t.Errorf("%s: trend %v", name, z)
		}
	}
	if z := crowd.Trend(10, weekMs, 10); z < 2 {
		t.Errorf("ten events now, none before: trend %v", z)
	}
}

// TestRisingListsTheHighest reads more objects than the list holds.
func TestRisingListsTheHighest(t *testing.T) {
	counts := make([]crowd.Counted, 5*crowd.MaxRising)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range counts {
		counts[i] = crowd.Counted{ObjectID: fmt.Sprintf("o%05d", i), Count: 20, Recent: 40 * random.Float64()}
	}
	x := crowd.Index{HalfLife: weekMs}
	for cell := range crowd.PackCounts(counts) {
		must.Succeed(t, x.AddCounts(cell))
	}
	got := x.Rising()
	slices.SortFunc(counts, func(a, b crowd.Counted) int {
		if a.Recent > b.Recent {
			return -1
		}
		return 1
	})
	if len(got) != crowd.MaxRising {
		t.Fatalf("%d objects", len(got))
	}
	for i, r := range got {
		if r.ObjectID != counts[i].ObjectID || r.Score != crowd.Trend(20, weekMs, counts[i].Recent) {
			t.Fatalf("place %d is %v, want %v", i, r, counts[i])
		}
	}
}
