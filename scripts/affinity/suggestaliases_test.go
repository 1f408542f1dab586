package main

import (
	"strings"
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
	const written = `{"objectID":"1","brand":["Tech & Gadgets","Чай","한국"]}
{"objectID":"2","brand":["Tech & Gadgets","Чай","한국","iphone"]}
{"objectID":"3","brand":["Tech &amp; Gadgets","Чаи\u0306","\u1112\u1161\u11ab\u1100\u116e\u11a8","iphone 7"]}
`
	run(written, "--objects", "-").wants(t, cli.ExitOK, "Tech &amp; Gadgets", "entities\n", "Unicode\n",
		"doubtful, as most of these mean other things:\nfacet  value     objects  counts as  objects  both  because of\nbrand  iphone 7  1        iphone     1        0     digits\n")
	if got := run(written, "--objects", "-", "--json"); strings.Contains(got.out, "iphone") || !strings.Contains(got.out, `"Tech \u0026amp; Gadgets": "Tech \u0026 Gadgets"`) {
		t.Errorf("written by default:\n%s", got.out)
	}
	run(written, "--objects", "-", "--json", "--doubtful").wants(t, cli.ExitOK, `"iphone 7": "iphone"`)
	run(`{"objectID":"1","brand":"Nike"}`, "--objects", "-").wants(t, cli.ExitOK, "no values look alike")

	run(objects).wants(t, cli.ExitUsage, "--objects")
	run(objects, "--objects", "-", "--limit", "0").wants(t, cli.ExitUsage, "--limit 0: must be from 1 to 5000")
	run(objects, "--objects", "-", "--facet", "size").wants(t, cli.ExitFailed, "no object of - has the facet size")
	run("{}", "--objects", "-").wants(t, cli.ExitFailed, "1 of 1 line cannot be read")
}
