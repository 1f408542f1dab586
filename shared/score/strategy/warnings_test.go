package strategy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestNamesThatMatchNothingAreWarnedAbout(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string // how the warnings begin
	}{
		"names that match": {`"eventsScoring":[{"eventName":"Product Viewed","eventType":"view","score":1}],
			"facetsScoring":[{"facetName":"categories.lvl0","score":1},{"facetName":"größe","score":1}],"allowedValues":{"größe":["L","Übergröße"]}`, nil},
		"a facet with a colon":   {`"eventsScoring":[],"facetsScoring":[{"facetName":"a:b","score":1}]`, []string{`facetsScoring[0].facetName "a:b" has a colon`}},
		"a facet that is padded": {`"eventsScoring":[],"facetsScoring":[{"facetName":"brand ","score":1}]`, []string{`facetsScoring[0].facetName "brand " begins or ends`}},
		"an event name beyond ASCII": {`"eventsScoring":[{"eventName":"Käufe","eventType":"view","score":1}],"facetsScoring":[]`,
			[]string{`eventsScoring[0].eventName "Käufe" matches no event`}},
		"an event name that is too long": {`"eventsScoring":[{"eventName":"` + strings.Repeat("n", 65) + `","eventType":"view","score":1}],"facetsScoring":[]`,
			[]string{`eventsScoring[0].eventName "nnn`}},
		"an event name that is padded": {`"eventsScoring":[{"eventName":"Seen","eventType":"view","score":1},{"eventName":" Seen","eventType":"view","score":1}],"facetsScoring":[]`,
			[]string{`eventsScoring[1].eventName " Seen" begins or ends`}},
		"a list of a facet that does not score": {`"eventsScoring":[],"facetsScoring":[{"facetName":"tags","score":0}],"allowedValues":{"tags":["a"],"Tags":["a"]}`,
			[]string{`allowedValues["Tags"] has no effect`, `allowedValues["tags"] has no effect`}},
		"a list with a value that an alias renames": {`"eventsScoring":[],"facetsScoring":[{"facetName":"tags","score":1}],"allowedValues":{"tags":["a","b"]},"aliases":{"tags":{"a":"b"}}`,
			[]string{`allowedValues["tags"] has "a", which no value counts as: by an alias it counts as "b"`}},
		"a list with an ignored value": {`"eventsScoring":[],"facetsScoring":[{"facetName":"tags","score":1}],"allowedValues":{"tags":["a","None"]}`,
			[]string{`allowedValues["tags"] has "None", which scores nothing`}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := strategy.Decode([]byte("{" + test.body + `,"personalizationImpact":50}`))
			if err != nil {
				t.Fatal(err)
			}
			got := s.Warnings()
			for i := range min(len(got), len(test.want)) {
				if strings.HasPrefix(got[i], test.want[i]) {
					got[i] = test.want[i]
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarningsAreFew(t *testing.T) {
	s := strategy.Strategy{FacetsScoring: []strategy.FacetScore{{FacetName: "tags", Score: 1}}, Aliases: map[string]map[string]string{"tags": {}},
		AllowedValues: map[string]strategy.ValueSet{"tags": strategy.SetOf(numbered(5_000)...)}}
	for _, v := range numbered(5_000) {
		s.Aliases["tags"][v] = "another"
	}
	if n := len(s.Warnings()); n != 50 {
		t.Errorf("%d warnings, want 50", n)
	}
}
