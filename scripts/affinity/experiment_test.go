package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/local/stack"
)

func TestExperimentSize(t *testing.T) {
	size := []string{"experiment", "size", "--base", "0.02", "--effect", "0.05"}
	affinity(t, "", append(size, "--daily", "4000")...).wants(t, cli.ExitOK,
		"With 4,000 new people a day, 420 days show a difference of 5 % in four of five tests: from 2 % of the people to 2.1 %.\n",
		"838,040 in the control and 838,040 in the other arm", "on the last day, 158 days would do",
		"14 days show a difference of 27 %, 28 days one of 19 %, 56 days one of 14 %.\n")
	got := affinity(t, "", append(size, "--daily", "100000", "--arms", "3", "--control", "0.2", "--spread", "3", "--json")...)
	got.wants(t, cli.ExitOK)
	var needs struct {
		lift.Needs
		Words string
	}
	if err := json.Unmarshal([]byte(got.out), &needs); err != nil || needs.Days <= needs.OnceDays || needs.Words == "" ||
		needs.Arm != needs.Control*2 || len(needs.Shows) != 3 {
		t.Errorf("%v: %s", err, got.out)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{size, "--daily is required: how many new people come on a day"},
		{append(size, "--daily", "0"), "--daily 0: must be 1 to"},
		{append(size, "--daily", "1"), "--effect 0.05: takes 1676080 days to show, more than ten years"},
		{append(size, "--daily", "4000", "--arms", "1"), "--arms 1: must be 2 to 100"},
		{append(size, "--daily", "4000", "now"), `unknown command "now"`},
		{[]string{"experiment"}, "affinity experiment needs a command"},
	} {
		affinity(t, "", test.args...).wants(t, cli.ExitUsage, test.want)
	}
}

// TestExperimentCommands runs an experiment on a real engine, to the promotion of an arm.
func TestExperimentCommands(t *testing.T) {
	t.Parallel()
	s := startEngine(t, stack.Options{ConfigTTL: time.Millisecond})
	run := func(args ...string) ran {
		return affinity(t, "", append([]string{args[0], "--url", s.URL}, args[1:]...)...)
	}
	const scores = `{"eventsScoring":[{"eventName":"V","eventType":"view","score":1}],"facetsScoring":[{"facetName":"brand","score":1}]`
	for _, impact := range []string{"20", "80"} {
		run("strategy", "set", file(t, "s.json", scores+`,"personalizationImpact":`+impact+`}`)).wants(t, cli.ExitOK)
	}
	run("experiment", "list").wants(t, cli.ExitOK, "begins one")
	run("experiment", "show", "x").wants(t, cli.ExitFailed, "show experiment x", "404 Experiment does not exist")
	start := []string{"experiment", "start", "x", "--metric", "clicks", "--hypothesis", "more", "--end", "2099-01-01T00:00:00Z"}
	arms := []string{"--arm", "less=1:0.3", "--arm", "more=2:0.7"}
	run(append(start, arms...)...).wants(t, cli.ExitOK, "experiment x, running: from 2", " to 2099-01-01T00:00:00Z, 100 % of the users, by clicks per user: more\n",
		"ARM   STRATEGY  WEIGHT  \nless  1         30 %    \nmore  2         70 %    \n")
	run(append(start, "--arm", "less=1", "--arm", "more=2", "--coverage", "0.5")...).wants(t, cli.ExitOK, ", 50 % of", "more  2         50 %")
	run("experiment", "list").wants(t, cli.ExitOK, "x           running  2", "clicks  less, more\n")
	run("experiment", "promote", "x", "most").wants(t, cli.ExitFailed, "promote an arm of experiment x", `it has no arm "most"`)
	run("strategy", "set", file(t, "s.json", `{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0}`)).wants(t, cli.ExitFailed,
		"it has not ended, and its arms share the scoring")
	run("experiment", "promote", "x", "less").wants(t, cli.ExitOK, "experiment x, ended", "less  1         50 %    promoted\n")
	run("experiment", "stop", "x").wants(t, cli.ExitOK, "experiment x, ended")
	run("strategy", "list").wants(t, cli.ExitOK, "arm less of experiment x")
	for _, test := range []struct {
		args []string
		want string
	}{
		{start, "--arm is required twice or more"},
		{append(start, "--arm", "less=1", "--arm", "more"), `--arm "more": must be a name and a version`},
		{append(start, "--arm", "less=1:1", "--arm", "more=2"), "give all arms a weight, or none"},
		{append(start, "--arm", "less=1:x", "--arm", "more=2:1"), `"x" is no weight`},
		{append([]string{"experiment", "start", "x"}, arms...), "--metric is required: conversions, revenue or clicks"},
		{append(append(start, arms...), "--start", "soon"), `--start "soon": `},
		{[]string{"experiment", "promote", "x"}, "ARM"},
	} {
		run(test.args...).wants(t, cli.ExitUsage, test.want)
	}
}
