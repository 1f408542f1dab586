package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/lift"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/experiment"
)

// A report of the holdout is made, printed in words, as JSON, as CSV and as a picture, and read again.
func TestExperimentReport(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(append([]string{"experiment"}, args...), "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	run("report", "holdout").wants(t, cli.ExitFailed, "The app holds nobody out, so there is nothing to compare")
	run("report", "checkout").wants(t, cli.ExitFailed, `The app has no experiment "checkout" now`)
	run("report", "holdout", "--last").wants(t, cli.ExitFailed, `No report of "holdout" yet: POST /1/reports starts one`)
	h := experiment.Holdout{Share: 0.2, Seed: "q4"}
	_, err := s.Backends.CachedConfig.SetHoldout(t.Context(), "demo", h)
	must(t, err)
	var events []string
	held := 0
	for i := range 600 {
		user, price := fmt.Sprint("user-", i), 30
		if h.Has(user) {
			held, price = held+1, 20
		}
		events = append(events, fmt.Sprintf(`{"eventType":"conversion","eventName":"Bought","index":"i","userToken":%q,"objectIDs":["1"],"objectData":[{"price":%d}],"currency":"EUR"}`,
			user, price+i%3))
	}
	rawPost(t, s, "/1/events", `{"events":[`+strings.Join(events, ",")+`]}`)
	must(t, s.Idle(t.Context()))
	plot := filepath.Join(t.TempDir(), "lift.svg")
	run("report", "holdout", "--plot", plot).wants(t, cli.ExitOK, "Arm personalized earned 47 % more per user than holdout; between +",
		"decided, more than holdout.", "holdout from 20", "(1 day), 600 users with an event in these days:", "ARM ", "REVENUE PER USER", fmt.Sprintf("personalized  %d", 600-held), "EUR",
		"The interval may be read every day.")
	svg, err := os.ReadFile(plot)
	must(t, err)
	if !strings.Contains(string(svg), "holdout: revenue per user over holdout") || !strings.Contains(string(svg), "<circle") {
		t.Errorf("the plot is %s", svg)
	}
	var got api.ExperimentReport
	last := run("report", "holdout", "--last", "--metric", "conversions", "--json")
	last.wants(t, cli.ExitOK)
	must(t, json.Unmarshal([]byte(last.out), &got))
	if got.Metric != "conversions" || got.People != 600 || got.Arms[0].Users != int64(held) || got.Arms[1].Conversions != int64(600-held) || len(got.Series) != 1 {
		t.Errorf("%+v", got)
	}
	run("report", "holdout", "--last", "-o", "csv").wants(t, cli.ExitOK, "name,users,expected,exposed,clicks,conversions,revenue,perUser,attributed\nholdout,", "\npersonalized,")
	run("report", "holdout", "--month", "2026-01").wants(t, cli.ExitFailed, `No report of "holdout" of 2026-01`)
	run("report", "holdout", "--month", "January").wants(t, cli.ExitFailed, "month must be a month like 2026-11")
	run("report", "holdout", "--from", "2020-01-01").wants(t, cli.ExitFailed, `is before the first day of "holdout"`)
	run("report", "holdout", "--currency", "euro").wants(t, cli.ExitFailed, "must be three capital letters")
	run("report", "holdout", "--metric", "love").wants(t, cli.ExitUsage, `--metric "love": must be clicks`)
	run("report", "holdout", "--last", "--from", "2026-11-01").wants(t, cli.ExitUsage, "leave out --from")
	run("reports", "list").wants(t, cli.ExitOK, "report-", "done", "holdout")
	run("reports", "cancel", "none").wants(t, cli.ExitFailed, `No report "none": GET /1/reports lists the latest`)
	affinity(t, "", "audit-log", "--url", s.URL, "--app", "demo", "--key", "demokey").wants(t, cli.ExitOK, "report.start", "holdout")
}

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
