package main

import (
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestSuggestAliases lists what a catalog and the strategy of a real engine lead to.
func TestSuggestAliases(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	const objects = `{"objectID":"1","brand":"Nike","color":"red"}
{"objectID":"2","brand":"Nike","color":"Red"}
{"objectID":"3","brand":["NIKE","Puma"],"color":"Red"}
{"objectID":"4","brand":["Nikes","Pumas"]}
{"objectID":"5","brand":"Puma"}
`
	run := func(input string, args ...string) ran {
		t.Helper()
		return affinity(t, input, append(append([]string{"strategy", "suggest-aliases"}, args...), "--url", s.URL)...)
	}
	run(objects, "--objects", "-").wants(t, cli.ExitOK,
		"facet  value  objects  counts as  objects  both  because of\n"+
			"brand  NIKE   1        Nike       2        0     case\n"+
			"brand  Nikes  1        Nike       2        0     plural\n"+
			"brand  Pumas  1        Puma       2        0     plural\n"+
			"color  red    1        Red        2        0     case\n")

	const strategy = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[{"facetName":"brand","score":3}],
		"personalizationImpact":50,"aliases":{"brand":{"Nikes":"Nike"}}}`
	affinity(t, strategy, "strategy", "set", "-", "--url", s.URL).wants(t, cli.ExitOK)
	run(objects, "--objects", "-", "--json").wants(t, cli.ExitOK, "{\n  \"aliases\": {\n    \"brand\": {\n      \"NIKE\": \"Nike\",\n      \"Nikes\": \"Nike\",\n      \"Pumas\": \"Puma\"\n    }\n  }\n}\n")
	run(objects, "--objects", "-", "--limit", "1", "--json").wants(t, cli.ExitOK, "\"NIKE\": \"Nike\",\n      \"Nikes\": \"Nike\"\n    }")
	run(`{"objectID":"1","brand":"Nike"}`, "--objects", "-").wants(t, cli.ExitOK, "no values look alike")

	run(objects).wants(t, cli.ExitUsage, "--objects")
	run(objects, "--objects", "-", "--limit", "0").wants(t, cli.ExitUsage, "--limit 0: must be from 1 to 5000")
	run(objects, "--objects", "-", "--facet", "size").wants(t, cli.ExitFailed, "no object of - has the facet size")
	run("{}", "--objects", "-").wants(t, cli.ExitFailed, "1 of 1 line cannot be read")
}
