package strategy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

func TestDiff(t *testing.T) {
	const base = `{"eventsScoring":[{"eventName":"a","eventType":"view","score":1},{"eventName":"b","eventType":"view","score":2}],
		"facetsScoring":[{"facetName":"color","score":3}],"personalizationImpact":50,"halfLives":[7],"aliases":{"color":{"Rouge":"Red"}},
		"allowedValues":{"tags":["news","art"]},"ranking":{"pairs":{"weight":5}}}`
	decode := func(text string) strategy.Strategy {
		t.Helper()
		s, err := strategy.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, test := range map[string]struct{ from, to, want string }{
		"nothing":          {``, ``, `null`},
		"an event's score": {`"score":1`, `"score":9`, `[{"key":"eventsScoring","of":["view","a"],"before":1,"after":9}]`},
		"another event": {`"eventName":"a"`, `"eventName":"c"`,
			`[{"key":"eventsScoring","of":["view","c"],"before":null,"after":1},{"key":"eventsScoring","of":["view","a"],"before":1,"after":null}]`},
		"another order": {`[{"eventName":"a","eventType":"view","score":1},{"eventName":"b","eventType":"view","score":2}]`,
			`[{"eventName":"b","eventType":"view","score":2},{"eventName":"a","eventType":"view","score":1}]`,
			`[{"key":"eventsScoring.order","before":[["view","a"],["view","b"]],"after":[["view","b"],["view","a"]]}]`},
		"a facet's weight": {`"score":3`, `"score":0`, `[{"key":"facetsScoring","of":["color"],"before":3,"after":0}]`},
		"impact":           {`50`, `0`, `[{"key":"personalizationImpact","before":50,"after":0}]`},
		"half-lives":       {`[7]`, `["7d","12h"]`, `[{"key":"halfLives","before":[7],"after":["7d","12h"]}]`},
		"no half-lives":    {`[7]`, `[]`, `[{"key":"halfLives","before":[7],"after":null}]`},
		"an alias":         {`"Red"`, `"red"`, `[{"key":"aliases","of":["color","Rouge"],"before":"Red","after":"red"}]`},
		"other aliases": {`"color":{"Rouge":"Red"}`, `"color":{"Rot":"Red"},"size":{"l":"L"}`,
			`[{"key":"aliases","of":["color","Rot"],"before":null,"after":"Red"},{"key":"aliases","of":["color","Rouge"],"before":"Red","after":null},` +
				`{"key":"aliases","of":["size","l"],"before":null,"after":"L"}]`},
		"allowed values":                  {`["news","art"]`, `["art","new"]`, `[{"key":"allowedValues","of":["tags"],"before":["art","news"],"after":["art","new"]}]`},
		"allowed values in another order": {`["news","art"]`, `["art","news"]`, `null`},
		"allowed values of another facet": {`"tags"`, `"topics"`,
			`[{"key":"allowedValues","of":["tags"],"before":["art","news"],"after":null},{"key":"allowedValues","of":["topics"],"before":null,"after":["art","news"]}]`},
		"ignored values":     {`"allowedValues"`, `"ignoredValues":["-"],"allowedValues"`, `[{"key":"ignoredValues","before":null,"after":["-"]}]`},
		"nothing is ignored": {`"allowedValues"`, `"ignoredValues":[],"allowedValues"`, `[{"key":"ignoredValues","before":null,"after":[]}]`},
		"a weight":           {`"weight":5`, `"weight":0`, `[{"key":"ranking.pairs.weight","before":5,"after":0}]`},
		"a ranking": {`{"pairs":{"weight":5}}`, `{"contrast":"none","session":{"halfLife":"2e"},"freshness":{"attribute":"date"}}`,
			`[{"key":"ranking.contrast","before":null,"after":"none"},{"key":"ranking.session.halfLife","before":null,"after":"2e"},` +
				`{"key":"ranking.pairs.weight","before":5,"after":null},{"key":"ranking.freshness.attribute","before":null,"after":"date"}]`},
		"a placement": {`"ranking"`, `"placements":{"home":{"pairs":{"weight":9}},"cart":{}},"ranking"`,
			`[{"key":"placements[\"cart\"]","before":null,"after":{}},{"key":"placements[\"home\"].pairs.weight","before":null,"after":9}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(strategy.Diff(decode(base), decode(strings.Replace(base, test.from, test.to, 1))))
			if err != nil || string(got) != test.want {
				t.Errorf("error %v, got\n%s, want\n%s", err, got, test.want)
			}
		})
	}
}

// Strategies differ if and only if Diff finds a change.
func TestDiffFindsEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := valid(t)
		b := a
		other := valid(t)
		switch rapid.IntRange(0, 9).Draw(t, "changed") {
		case 0:
			b.EventsScoring = other.EventsScoring
		case 1:
			b.FacetsScoring = other.FacetsScoring
		case 2:
			b.PersonalizationImpact = other.PersonalizationImpact
		case 3:
			b.HalfLives = other.HalfLives
		case 4:
			b.Aliases = other.Aliases
		case 5:
			b.Ranking = other.Ranking
		case 6:
			b.IgnoredValues = other.IgnoredValues
		case 7:
			b.AllowedValues = other.AllowedValues
		case 8:
			b.Placements = other.Placements
		}
		if changes := strategy.Diff(a, b); (len(changes) == 0) != a.Equal(b) {
			t.Fatalf("changes %+v of\n%+v\n%+v", changes, a, b)
		}
	})
}
