package boost_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/affinityengine/affinity/shared/local/race"
	"github.com/affinityengine/affinity/shared/rank/boost"
)

// tame returns a random profile that every engine can express.
func tame(random *rand.Rand, n int) []boost.Affinity {
	var affinities []boost.Affinity
	for i := range n {
		affinities = append(affinities, boost.Affinity{
			Facet: fmt.Sprint("facet", random.IntN(6)),
			Value: fmt.Sprint("value", i),
			Score: float64(random.IntN(8)+1) * math.Exp(random.NormFloat64()), // some scores are equal
		})
	}
	return affinities
}

// Weights lie in 0..1 and fall. The strongest ones of all facets add up to 1, so
// that a document with one value a facet has a factor of at most 1 + impact.
func TestWeightsAreSharesOfTheBestDocument(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range race.Or(500, 50) {
		r := request(boost.Engines()[random.IntN(9)], "", tame(random, 1+random.IntN(120)))
		r.Limit = 1 + random.IntN(100)
		answer, _ := render(t, r)
		if len(answer.Affinities) == 0 || len(answer.Affinities) > r.Limit {
			t.Fatalf("%s: %d affinities at limit %d", r.Engine, len(answer.Affinities), r.Limit)
		}
		best, before := map[string]float64{}, 1.0
		for _, a := range answer.Affinities {
			if !(a.Weight > 0) || a.Weight > before {
				t.Fatalf("%s: weight %g after %g", r.Engine, a.Weight, before)
			}
			before = a.Weight
			best[a.Facet] = max(best[a.Facet], a.Weight)
		}
		sum := 0.0
		for _, w := range best {
			sum += w
		}
		if math.Abs(sum-1) > 1e-5 {
			t.Fatalf("%s: the strongest weights of all facets add up to %g", r.Engine, sum)
		}
	}
}

func TestOrderOfTheProfileDoesNotMatter(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		random := rand.New(rand.NewPCG(5, 6))
		for range race.Or(20, 3) {
			r := request(engine, mode, append(tame(random, 60), hard()...))
			r.Limit = 1 + random.IntN(100)
			first := whole(t, r)
			for range 3 {
				random.Shuffle(len(r.Affinities), func(i, j int) {
					r.Affinities[i], r.Affinities[j] = r.Affinities[j], r.Affinities[i]
				})
				if again := whole(t, r); again != first {
					t.Fatalf("two orders of a profile:\n%s\n%s", first, again)
				}
			}
		}
	})
}

// whole returns all of an answer.
func whole(t *testing.T, r boost.Request) string {
	t.Helper()
	answer, _ := render(t, r)
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// No mode drops what is not special to it.
func TestTameValuesAreRendered(t *testing.T) {
	everyMode(t, func(t *testing.T, engine, mode string) {
		random := rand.New(rand.NewPCG(7, 8))
		for range race.Or(50, 5) {
			r := request(engine, mode, tame(random, 1+random.IntN(20)))
			r.Impact = 1 + random.IntN(100)
			if answer := checkStructure(t, r); len(answer.Affinities) != len(r.Affinities) {
				t.Fatalf("of %d affinities %d are in the query, dropped: %v", len(r.Affinities), len(answer.Affinities), answer.Dropped)
			}
		}
	})
}
