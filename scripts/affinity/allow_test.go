package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// A list is made of the objects of a catalog, and no other value scores once a person has
// set it.
func TestAllowByObjects(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{})
	const active = `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":10}],"facetsScoring":[{"facetName":"tags","score":3}],
		"personalizationImpact":50,"aliases":{"tags":{"Paintings":"art"}},"allowedValues":{"size":["L"]}}`
	const objects = `{"objectID":"1","tags":["news","art","N/A"]}
{"objectID":"2","tags":["news","Paintings","art","N/A"]}
{"objectID":"3","tags":["news","sport","N/A"],"brand":"art"}
{"objectID":"4","tags":["Paintings","draft 7"]}
{"objectID":"5","tags":["sport"]}
`
	run := func(input string, args ...string) ran {
		t.Helper()
		return affinity(t, input, append(append([]string{"strategy"}, args...), "--url", s.URL)...)
	}
	run(active, "set", "-").wants(t, cli.ExitOK, `warning: allowedValues["size"] has no effect`)
	file := filepath.Join(t.TempDir(), "strategy.json")
	run(objects, "allow", "--facet", "tags", "--objects", "-", "--top", "3", "--out", file).wants(t, cli.ExitOK,
		"value  objects\nart    3\nnews   3\nsport  2\n3 of 4 values of tags may score\n", "the active strategy with this list is in "+file)
	run(objects, "allow", "--facet", "tags", "--objects", "-", "--top", "2", "--json").wants(t, cli.ExitOK,
		"{\n  \"allowedValues\": {\n    \"size\": [\n      \"L\"\n    ],\n    \"tags\": [\n      \"art\",\n      \"news\"\n    ]\n  }\n}\n")
	written, err := os.ReadFile(file)
	must(t, err)
	got, err := strategy.Decode(written)
	must(t, err)
	want, err := strategy.Decode([]byte(active))
	must(t, err)
	want.AllowedValues["tags"] = strategy.SetOf("art", "news", "sport")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	run("", "get").wants(t, cli.ExitOK, `"allowedValues"`)
	if out := run("", "get").out; strings.Contains(out, "news") {
		t.Errorf("it was set without a person:\n%s", out)
	}

	run("", "set", file).wants(t, cli.ExitOK)
	affinity(t, "", "events", "send", "ann", "--filter", "tags:Paintings", "--filter", "tags:draft 7", "--url", s.URL).wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	profile := affinity(t, "", "profile", "ann", "--url", s.URL)
	if profile.wants(t, cli.ExitOK, "art"); strings.Contains(profile.out, "draft") {
		t.Errorf("a value that is not allowed scores:\n%s", profile.out)
	}
	affinity(t, "", "explain", "ann", "--url", s.URL).wants(t, cli.ExitOK,
		"values that are not among those that the strategy allows of their facet: tags:draft 7 (1)")

	run("", "allow", "--facet", "tags").wants(t, cli.ExitFailed, "the active strategy allows 3 values of tags", "--objects FILE")
	run(objects, "allow", "--objects", "-").wants(t, cli.ExitUsage, "--facet is required")
	run(objects, "allow", "--facet", "tags", "--objects", "-", "--top", "5001").wants(t, cli.ExitUsage, "--top 5001: must be from 1 to 5000")
	run(objects, "allow", "--facet", "tags", "--top", "1001").wants(t, cli.ExitUsage, "--top 1001: must be from 1 to 1000")
	run(objects, "allow", "--facet", "tag", "--objects", "-").wants(t, cli.ExitFailed, "no object of - has a value of the facet tag")
	run(objects, "allow", "--facet", "brand", "--objects", "-").wants(t, cli.ExitOK, `warning: allowedValues["brand"] has no effect`)
	run("", "allow", "--facet", "brand").wants(t, cli.ExitFailed, "Segments are off for this app", "--objects FILE")
}

// Without a catalog the list has the values that most users have.
func TestAllowByUsers(t *testing.T) {
	const active = `{"eventsScoring":[],"facetsScoring":[{"facetName":"tags","score":3}],"personalizationImpact":50}`
	var values []string
	for i := range 30 {
		values = append(values, fmt.Sprintf(`{"value":"t%02d","users":%d}`, i, 1000-i))
	}
	answer := fmt.Sprintf(`{"facet":"tags","values":[%s,{"value":"rare","users":"fewer than 20"}],"total":4321,"asOf":"2026-11-21T10:00:00.000Z"}`,
		strings.Join(values, ","))
	url, requests := recomputeEngine(t, "", active, answer)
	affinity(t, "", "strategy", "allow", "--facet", "tags", "--top", "31", "--url", url).wants(t, cli.ExitOK,
		"value        users\nt00          1000\n", "t09          991\n... 11 more  \nt21          979\n", "rare         fewer than 20\n31 of 4321 values of tags may score\n")
	if want := []string{"GET /1/strategies/personalization", "GET /1/values?facet=tags&limit=31"}; !cmp.Equal(*requests, want) {
		t.Errorf("requests %q, want %q", *requests, want)
	}
	url, _ = recomputeEngine(t, "", active, `{"facet":"tags","values":[],"total":0,"asOf":"2026-11-21T10:00:00.000Z"}`)
	affinity(t, "", "strategy", "allow", "--facet", "tags", "--url", url).wants(t, cli.ExitFailed, "no profile has a value of tags")
}
