package rank

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/api"
)

// The encoder writes what package json writes, but for the form of numbers.
func TestEncode(t *testing.T) {
	fallback, asOf := api.FallbackPopularity, api.AtMillis(1_795_176_000_000)
	for _, a := range []api.RankAnswer{
		{ID: "a", Items: []api.RankedItem{}},
		{ID: "a", Took: 3, StrategyVersion: 2, ScoringVersion: 1, CrowdAsOf: &asOf, Fallback: &fallback, Items: []api.RankedItem{
			{ObjectID: "plain", Score: 1.25},
			{ObjectID: "q\"uote\\ \x00\n<&>\u2028\uFFFD é", Score: -0.25},
			{ObjectID: "tiny", Score: 5e-324}, {ObjectID: "large", Score: math.MaxFloat64}, {ObjectID: "million", Score: 1e6}, {ObjectID: "0", Score: 1e-7},
			{ObjectID: "nothing speaks for it", Features: []api.RankFeature{}},
			{ObjectID: "explained", Score: 0.1, Features: []api.RankFeature{{Name: "affinity", Value: 0.1, Parts: []api.RankPart{{Name: "a:b", Value: 0.1}}}}},
		}},
	} {
		encoded, err := encode(nil, a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var got, wanted any
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
		if err := json.Unmarshal(want, &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("(-json +encode):\n%s", diff)
		}
	}
}
