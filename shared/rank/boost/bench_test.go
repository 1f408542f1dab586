package boost_test

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/boost"
)

// BenchmarkRender renders 100 affinities of six facets and encodes the query.
func BenchmarkRender(b *testing.B) {
	affinities := tame(rand.New(rand.NewPCG(1, 1)), 100)
	for _, engine := range boost.Engines() {
		for _, mode := range boost.Modes(engine) {
			b.Run(engine+"."+mode, func(b *testing.B) {
				r := request(engine, mode, affinities)
				r.Limit = 100
				b.ReportAllocs()
				for b.Loop() {
					answer, err := boost.Render(r)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := json.Marshal(answer.Query); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLargeProfile renders the strongest 20 of 10,000 affinities, the most
// that a profile has, in the order of profiles.
func BenchmarkLargeProfile(b *testing.B) {
	affinities := tame(rand.New(rand.NewPCG(1, 1)), 10_000)
	slices.SortFunc(affinities, func(a, b boost.Affinity) int { return cmp.Compare(b.Score, a.Score) })
	r := request("elasticsearch", "", affinities)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := boost.Render(r); err != nil {
			b.Fatal(err)
		}
	}
}
