package boost_test

import (
	"math"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/boost"
)

// A facet, a field and two values never change the structure of a query.
func FuzzStructure(f *testing.F) {
	for _, a := range hard() {
		f.Add(a.Facet, a.Facet, a.Value, "Apple", uint8(100))
	}
	for _, injection := range injections {
		f.Add("brand", injection, injection, "x", uint8(50))
	}
	f.Add("_query_", "a.b", `x"^=9 _val_:"y`, "a:(b", uint8(1))
	f.Fuzz(func(t *testing.T, facet, field, value, other string, impact uint8) {
		for _, engine := range boost.Engines() {
			for _, mode := range boost.Modes(engine) {
				r := request(engine, mode, []boost.Affinity{
					{facet, value, 4}, {"brand", value, 3}, {"brand", other, 2}, {"color", other, 1}, {"mapped", value, 1},
				})
				r.Impact = int(impact) % 101
				if field != "" {
					r.FieldMap = map[string]string{"mapped": field}
				}
				checkStructure(t, r)
			}
		}
	})
}

// Whatever the scores are, weights lie in 0..1 and fall, and no affinity is lost.
func FuzzWeights(f *testing.F) {
	f.Add(10.0, 8.0, 3.0, uint8(20))
	f.Add(math.MaxFloat64, math.MaxFloat64, math.SmallestNonzeroFloat64, uint8(1))
	f.Add(math.NaN(), math.Inf(1), -1.0, uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c float64, limit uint8) {
		r := request("elasticsearch", "", []boost.Affinity{{"brand", "a", a}, {"color", "b", b}, {"brand", "c", c}})
		r.Limit = 1 + int(limit)%boost.MaxLimit
		answer := checkStructure(t, r)
		count, before := 0, 1.0
		for _, a := range r.Affinities {
			if a.Score > 0 && !math.IsInf(a.Score, 1) {
				count++
			}
		}
		for _, w := range answer.Affinities {
			if !(w.Weight > 0) || w.Weight > before {
				t.Fatalf("weight %g after %g", w.Weight, before)
			}
			before = w.Weight
		}
		if got := len(answer.Affinities) + len(answer.Dropped); got != count {
			t.Fatalf("%d of %d affinities are in the answer", got, count)
		}
	})
}
