package algolia_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/algolia"
	"github.com/affinityengine/affinity/shared/api"
)

type scores = map[string]map[string]int

func profile(s scores) api.PersonalizationProfile { return api.PersonalizationProfile{Scores: s} }

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		theirs, ours scores
		want         algolia.Comparison
		same         bool
	}{
		"equal": {
			scores{"brand": {"Acme": 20, "Zenith": 5}}, scores{"brand": {"Acme": 18, "Zenith": 2}},
			algolia.Comparison{Common: 2, Missing: []string{}, New: []string{}, Order: 1, First: []string{"brand:Acme"}, EngineFirst: []string{"brand:Acme"}}, true,
		},
		"reversed": {
			scores{"brand": {"Acme": 20, "Zenith": 5}}, scores{"brand": {"Acme": 2, "Zenith": 20}},
			algolia.Comparison{Common: 2, Missing: []string{}, New: []string{}, Order: -1, First: []string{"brand:Acme"}, EngineFirst: []string{"brand:Zenith"}}, false,
		},
		// Three pairs: one is tied in the engine's profile, two are in opposite orders.
		"disjoint": {
			scores{"brand": {"Nova": 20}, "color": {"Red": 2}}, scores{"brand": {"Acme": 20}},
			algolia.Comparison{Missing: []string{"brand:Nova", "color:Red"}, New: []string{"brand:Acme"}, Order: -2 / math.Sqrt(3*2),
				First: []string{"brand:Nova"}, EngineFirst: []string{"brand:Acme"}}, false,
		},
		"one of several first values": {
			scores{"brand": {"Acme": 20}, "color": {"Red": 20}}, scores{"brand": {"Acme": 3}, "color": {"Red": 20}},
			algolia.Comparison{Common: 2, Missing: []string{}, New: []string{}, First: []string{"brand:Acme", "color:Red"}, EngineFirst: []string{"color:Red"}}, true,
		},
		"empty": {nil, nil, algolia.Comparison{Missing: []string{}, New: []string{}, Order: 1, First: []string{}, EngineFirst: []string{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := algolia.Compare(profile(test.theirs), profile(test.ours))
			if diff := cmp.Diff(test.want, got); diff != "" || got.SameFirst() != test.same {
				t.Errorf("the first value is the same: %v; (-want +got):\n%s", got.SameFirst(), diff)
			}
		})
	}
}
