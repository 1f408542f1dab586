package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
)

func TestPlan(t *testing.T) {
	workload := []string{"plan", "--events-per-day", "1e6", "--users", "200000", "--retention", "90"}
	got := affinity(t, "", workload...)
	got.wants(t, 0, "1,000,000 events a day in requests of 4, 2.894 reads a second; 200,000 users with 450 events each",
		"no sum: the price of the main item, Bigtable's nodes, is unknown", "--price-file",
		"bigtable_nodes (a node-hour): Bigtable's nodes 730; https://cloud.google.com/bigtable/pricing")
	got.wants(t, 0, "One machine with affinity serve", "  e2-small with a disk of ", "the machine, e2-small\n", "sum of what has a price\n",
		"the largest type serves ", "vm_address (a machine-hour with an external address")
	if strings.Contains(got.out, "before") {
		t.Errorf("the plan compares without --before:\n%s", got.out)
	}
	got = affinity(t, "", append(workload, "--before", "--price", "bigtable_nodes=0.65")...)
	got.wants(t, 0, "before", " 474.50 ", "sum of what has a price")
	prices := write(t, "prices", "# read today\nbigtable_nodes=0.65\n\nbigtable_ssd = 0.17\n")
	affinity(t, "", append(workload, "--price-file", prices)...).wants(t, 2, "line 4", `there is no price "bigtable_ssd "`)
	prices = write(t, "prices", "# read today\nbigtable_nodes=1\n\nbigtable_ssd=0.17\n")
	affinity(t, "", append(workload, "--price-file", prices, "--price", "bigtable_nodes=0.65")...).wants(t, 0, " 474.50 ", "sum of what has a price")
	if strings.Contains(got.out, "bigtable_nodes (a node-hour)") {
		t.Errorf("a price that is given is unknown:\n%s", got.out)
	}
	// 50 reads a second cost more in fees than an instance, and three requests with events do not.
	busy := append(workload, "--price", "bigtable_nodes=0.65", "--reads-per-second", "50")
	got = affinity(t, "", busy...)
	got.wants(t, 0, "these functions would cost less (--billing cheapest", "  profiles: 50.59 in place of ")
	if strings.Contains(got.out, "  ingest: ") {
		t.Errorf("ingest would cost less:\n%s", got.out)
	}
	got = affinity(t, "", append(busy, "--billing", "cheapest", "--before")...)
	got.wants(t, 0, "CPU of ingest and process", "CPU of profiles")
	if strings.Contains(got.out, "would cost less") {
		t.Errorf("the cheapest is not chosen:\n%s", got.out)
	}
	got = affinity(t, "", append(workload, "--json", "--before", "--reads-per-second", "12")...)
	got.wants(t, 0)
	var answer plan.Comparison
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || answer.Before == nil || answer.Now.Workload.ReadsPerSecond != 12 {
		t.Fatalf("%v: %s", err, got.out)
	}
	if answer.Now.Lines[0].USD != nil || answer.Now.Total != nil {
		t.Errorf("the unknown price of nodes costs something, or there is a sum: %+v", answer.Now)
	}
	got = affinity(t, "", append(workload, "--json", "--before", "--price", "bigtable_nodes=0.65")...)
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || *answer.Now.Total <= 474 || *answer.Before.Total <= *answer.Now.Total {
		t.Errorf("nothing is saved: %v: %s", err, got.out)
	}
}

func TestWrongPlan(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "--events-per-day is required: how many events"},
		{"--events-per-day 1e6 --users 10", "--retention is required"},
		{"--events-per-day 1e6 --users 10 --retention 0", "--retention 0: must be a whole number from 1 to 36500"},
		{"--events-per-day many --users 10 --retention 90", `invalid argument "many"`},
		{"--events-per-day 1 --users 100 --retention 2", "more than the 2 events that are kept"},
		{"--events-per-day 1e6 --users 10 --retention 90 --request-logs 2", "--request-logs 2: must be a number from 0 to 1"},
		{"--events-per-day 1e6 --users 10 --retention 90 --billing both", "--billing both: must be requests, instances or cheapest"},
		{"--events-per-day 1e6 --users 10 --retention 90 --storage-target-gib 9000", "--storage-target-gib 9000: must be a whole number from 2560 to 5120"},
		{"--events-per-day 1e6 --users 10 --retention 90 --price gold=1", `there is no price "gold"`},
		{"shop --events-per-day 1e6", "unknown command"},
	} {
		affinity(t, "", append([]string{"plan"}, strings.Fields(test.args)...)...).wants(t, 2, test.want)
	}
}
