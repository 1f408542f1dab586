package main

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// testMoney says what the app demo costs, which has sent events.
func testMoney(t *testing.T, s *stack.Stack, app func(string) ran) {
	t.Helper()
	prices := []string{"--money", "--price", "bigtable_nodes=1000", "--price", "bigtable_ssd=0.17", "--url", s.URL}
	affinity(t, "", append([]string{"usage"}, prices...)...).wants(t, cli.ExitOK, "BYTES  ", "USD", "Bigtable's nodes, by rows or bytes",
		"at least ", " US dollars, or at least ", "in a month of such days", "It leaves out egress, pubsub_retention, whose price is unknown", "An estimate, by list prices",
		"It takes 4 events a request, 90 days of retention and 1 cluster.")
	r := affinity(t, "", append([]string{"usage", "--json"}, prices...)...)
	r.wants(t, cli.ExitOK)
	var answer struct {
		api.Usage
		Money struct {
			Days     []struct{ USD float64 }
			Total    plan.Share
			MonthUSD float64
		}
	}
	if err := json.Unmarshal([]byte(r.out), &answer); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, d := range answer.Money.Days {
		sum += d.USD
	}
	m := answer.Money
	if m.Total.USD <= 0 || math.Abs(sum-m.Total.USD) > 1e-9*sum || math.Abs(m.MonthUSD-sum*plan.MonthDays) > 1e-6*m.MonthUSD || answer.Total.Events == 0 {
		t.Errorf("%v in days, %+v", sum, m)
	}
	affinity(t, "", "usage", "--money", "--url", s.URL).wants(t, cli.ExitOK, "It leaves out bigtable_nodes, bigtable_ssd, egress")
	affinity(t, "", "usage", "--price", "bigtable_nodes=1", "--url", s.URL).wants(t, cli.ExitUsage, "--price needs --money")
	affinity(t, "", "usage", "--money", "--retention", "0", "--url", s.URL).wants(t, cli.ExitUsage, "--retention 0: must be a whole number")
	affinity(t, "", "usage", "--money", "--price", "gold=1", "--url", s.URL).wants(t, cli.ExitUsage, `there is no price "gold"`)

	app("top --money --price bigtable_nodes=1000").wants(t, cli.ExitOK, "USD", "An estimate, by list prices")
	top := app("top --money --json --price bigtable_nodes=1000 --price bigtable_ssd=0.17")
	top.wants(t, cli.ExitOK)
	var apps []struct {
		usage.AppUse
		Money *plan.Share
	}
	if err := json.Unmarshal([]byte(top.out), &apps); err != nil || len(apps) == 0 || apps[0].App != "demo" || apps[0].Money == nil || apps[0].Money.USD <= 0 {
		t.Errorf("%v: %s", err, top.out)
	}
	app("top --clusters 2").wants(t, cli.ExitUsage, "--clusters needs --money")
}
