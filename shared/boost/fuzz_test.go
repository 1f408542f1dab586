package boost_test

import (
	"testing"

	"github.com/affinityengine/affinity/shared/boost"
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
