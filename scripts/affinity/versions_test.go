package main

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// TestStrategyVersions sets, lists, compares and restores strategies on a real
// engine.
func TestStrategyVersions(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	run := func(input string, args ...string) ran {
		t.Helper()
		return affinity(t, input, append(append([]string{"strategy"}, args...), "--url", s.URL)...)
	}
	run("", "list").wants(t, cli.ExitOK, "the app has no strategy yet")
	run("", "diff").wants(t, cli.ExitFailed, "the app has 0 versions of the strategy, to compare takes 2")

	const first = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":10}],"facetsScoring":[{"facetName":"color","score":3}],
		"personalizationImpact":50,"aliases":{"color":{"Rouge":"Red"}}}`
	const second = `{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":12},{"eventName":"Bought","eventType":"conversion","score":50}],
		"facetsScoring":[{"facetName":"brand","score":1}],"personalizationImpact":50,"halfLives":["12h",30]}`
	third := strings.Replace(second, `"personalizationImpact":50`, `"personalizationImpact":60,"ranking":{"session":{"halfLife":"2e"},"pairs":{"weight":7}}`, 1)
	for _, text := range []string{first, second, third} {
		run(text, "set", "-").wants(t, cli.ExitOK, "the strategy is set")
	}
	run("", "list").wants(t, cli.ExitOK, "version 3  set 20", "scores as version 2  active\n", "version 2  set ", "version 1  set ")
	run("", "list", "--json").wants(t, cli.ExitOK, `{"versions":[{"version":3,"scoringVersion":2,"setAt":"`, `"active":true},{"version":2,"scoringVersion":2,`)
	run("", "get", "--version", "1").wants(t, cli.ExitOK, `"Rouge": "Red"`)
	run("", "get", "--version", "0").wants(t, cli.ExitUsage, "--version 0: must be 1 or more")
	run("", "get", "--version", "9").wants(t, cli.ExitFailed, "404 No strategy: version 9 never existed or is no longer kept")

	run("", "diff").wants(t, cli.ExitOK, "version 2 -> version 3: the scores of profiles stay\n"+
		"  personalizationImpact: 60 instead of 50\n  ranking.session.halfLife: 2e instead of the default\n  ranking.pairs.weight: 7 instead of the default\n")
	run("", "diff", "1", "2").wants(t, cli.ExitOK, "version 1 -> version 2: the scores of profiles change\n"+
		"  view \"Seen\" counts 12 instead of 10\n  conversion \"Bought\" counts 50, and did not count before\n"+
		"  facet brand weighs 1, and did not count before\n  facet color no longer counts (3 before)\n"+
		"  half-lives: 12h, 30 instead of none\n  color:Rouge no longer counts as Red\n")
	run(third, "diff", "3", "-").wants(t, cli.ExitOK, "version 3 -> -: the same strategy\n")
	run("", "diff", "2", "--json").wants(t, cli.ExitOK, `{"from":"2","to":"3","scoringChange":false,"changes":[{"key":"personalizationImpact","before":50,"after":60},`)
	run("", "diff", "0").wants(t, cli.ExitUsage, `"0": want a version from 1 on, or a file`)
	run("", "diff", "1", "9").wants(t, cli.ExitFailed, "version 9 never existed")
	run("", "diff", "1", "2", "3").wants(t, cli.ExitUsage)
	run(`{"eventsScoring":1}`, "diff", "1", "-").wants(t, cli.ExitFailed, "the strategy -: eventsScoring must be a list")

	run("", "restore", "1").wants(t, cli.ExitOK, "the strategy is that of version 1 again")
	run("", "diff", "1", "4").wants(t, cli.ExitOK, "the same strategy")
	run("", "list").wants(t, cli.ExitOK, "version 4  set ")
	run("", "restore", "9").wants(t, cli.ExitFailed, "restore version 9 of the strategy", "404 No strategy")

	lists := strings.Replace(second, `"halfLives"`, `"ignoredValues":[],"allowedValues":{"brand":["Nike","Acme"],"tags":["a","b","c","d","e","f","g"]},"halfLives"`, 1)
	const noTags = "warning: allowedValues[\"tags\"] has no effect: facetsScoring does not score the facet\n"
	run(lists, "preview", "-").wants(t, cli.ExitOK, noTags, "the order of values would change")
	run(lists, "set", "-").wants(t, cli.ExitOK, noTags, "the strategy is set")
	run("", "diff", "2", "5").wants(t, cli.ExitOK, "version 2 -> version 5: the scores of profiles change\n"+
		"  ignoredValues: none instead of the default\n  facet brand scores no values but Acme, Nike\n"+
		"  facet tags scores no values but a, b, c, d, e and 2 more\n")
	run("", "diff", "5", "2").wants(t, cli.ExitOK, "  ignoredValues: the default instead of none\n  facet brand scores all values again\n")
	run("", "restore", "2").wants(t, cli.ExitOK)
	run("", "restore", "5").wants(t, cli.ExitOK, noTags, "the strategy is that of version 5 again")
	for _, bad := range []string{"0", "-1", "x", ""} {
		run("", "restore", "--", bad).wants(t, cli.ExitUsage)
	}
}
