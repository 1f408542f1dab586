package main

import (
	"encoding/json"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/judge/lift"
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
