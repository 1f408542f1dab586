package main

import (
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// Names of track calls are given a type one by one, and refused calls say how.
func TestNamesCommand(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran { return affinity(t, "", append(args, "--url", s.URL)...) }
	track := func(name string) {
		t.Helper()
		_, err := post(t.Context(), s, "/v1/track?index=products", map[string]any{"event": name, "userId": "ann", "properties": map[string]any{"product_id": "1"}})
		must(t, err)
	}
	run("events", "names").wants(t, cli.ExitOK, "the app has given no name of a track call a type")
	track("Recipe Saved")
	track("Prodcut Viewed")
	run("events", "refused").wants(t, cli.ExitOK, `"Prodcut Viewed": the closest name with a type is "Product Viewed" (view). PUT /1/track-names {"names":{"Prodcut Viewed":"view"}}, or `+"`affinity events names`",
		`"Recipe Saved": PUT /1/track-names`)
	run("events", "names", " Recipe  Saved=conversion", "A=B=view", "Old=click").wants(t, cli.ExitOK, "TYPE        NAME\nview        A=B\nclick       Old\nconversion  Recipe Saved\n")
	run("events", "names", "Old=", "Never=").wants(t, cli.ExitOK, "TYPE        NAME\nview        A=B\nconversion  Recipe Saved\n")
	run("events", "names", "--json").wants(t, cli.ExitOK, `{"names":{"A=B":"view","Recipe Saved":"conversion"}}`)
	track("Recipe Saved")
	must(t, s.Idle(t.Context()))
	run("export", "ann").wants(t, cli.ExitOK, `"eventName":"Recipe Saved"`, `"eventType":"conversion"`)
	for _, args := range [][]string{{"Recipe Saved"}, {"=view"}, {"A=view", " A =click"}} {
		run(append([]string{"events", "names"}, args...)...).wants(t, cli.ExitUsage, "")
	}
	run("events", "names", "A=buy").wants(t, cli.ExitFailed, `name track calls: `, `422 names: the type of "A" must be view, click or conversion, got "buy"`)
}

// The commonest mistake: events and catalog are of other indexes. The profile says so.
func TestProfileSaysWhyItIsEmpty(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{RetentionDays: 90})
	run := func(in string, args ...string) ran { return affinity(t, in, append(args, "--url", s.URL)...) }
	run("", "events", "send", "ann", "--index", "products", "--object", "s1").wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	run("", "profile", "ann").wants(t, cli.ExitOK, "no affinities: the app has no strategy yet")
	run(`{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":1}],"facetsScoring":[{"facetName":"color","score":1}],"personalizationImpact":50}`, "strategy", "set", "-").wants(t, cli.ExitOK)
	run("", "profile", "ann").wants(t, cli.ExitOK, "  no affinities:\n  - 1 of 1 event names objects that index products does not hold (such as s1)\n")
	run(`{"objectID":"s1","color":"Red"}`, "catalog", "import", "--index", "shop", "-").wants(t, cli.ExitOK)
	run("", "profile", "ann").wants(t, cli.ExitOK, "does not hold (such as s1; index shop holds it)")
	run("", "profile", "ann", "--json").wants(t, cli.ExitOK, `"affinities":[]`)
	run(`{"objectID":"s1","color":"Red"}`, "catalog", "import", "--index", "products", "-").wants(t, cli.ExitOK)
	run("", "profile", "ann").wants(t, cli.ExitOK, "and holds now (such as s1): a re-enrichment adds their filters")
}

// A refused event names the field beside the reason of the Insights API.
func TestRefusedEventsNameTheField(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	if _, err := post(t.Context(), s, "/1/events", map[string]any{"events": []any{map[string]any{"userToken": 7}}}); err == nil {
		t.Error("a number is taken for a user token")
	}
	affinity(t, "", "events", "refused", "--url", s.URL).wants(t, cli.ExitOK, "Invalid type for field events: expected string, got number (userToken)  {")
}
