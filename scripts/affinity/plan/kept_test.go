package plan_test

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// A deployment pays for the nodes that it keeps, and for warm instances while they wait.
func TestKeptByHand(t *testing.T) {
	w := small
	w.Clusters = 2
	w.Kept = plan.Kept{
		MinNodes: []float64{3, 1},
		Warm: []plan.Warm{
			{Function: "profiles", Instances: 2, VCPU: 1, GiB: 0.5}, {Function: "rank", Instances: 1, VCPU: 1, GiB: 1.5},
			{Function: "process", Instances: 2, VCPU: 1, GiB: 1},
		},
		Billing: map[string]string{"process": "instances"},
	}
	b := plan.Compute(w, simple, price.List(), plan.Push)
	// Ten requests a second keep one instance busy with probability 1 - 1/e. One instance of process always exists.
	waits := 2 - (1 - math.Exp(-1))
	got := map[string]float64{}
	for _, l := range b.Lines {
		got[l.What+", "+l.Price] += l.Quantity
	}
	for line, want := range map[string]float64{
		"Bigtable's nodes, bigtable_nodes":                  (3 + 1) * 730,
		"CPU of warm instances that wait, run_cpu_idle":     (waits + 1) * 2_628_000,
		"their memory, run_memory_idle":                     (waits*0.5 + 1.5) * 2_628_000,
		"CPU of warm instances that wait, run_cpu_instance": 1 * 2_628_000,
		"CPU of process, run_cpu_instance":                  1 * 2_628_000,
	} {
		if math.Abs(got[line]-want) > 1e-6*want {
			t.Errorf("%s: %v, want %v", line, got[line], want)
		}
	}
}

// The bill has as many conditions of alerts as Terraform makes, which its own test counts.
func TestConditionsAreThoseOfTerraform(t *testing.T) {
	text, err := os.ReadFile("../../../terraform/modules/monitoring/tests/monitoring.tftest.hcl")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`output\.conditions == (\d+) \+ length\(var\.hosts\)`).FindSubmatch(text)
	if m == nil {
		t.Fatal("the test of modules/monitoring counts the conditions in another form")
	}
	made, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	w := small
	w.Customers = 2
	lines := plan.Compute(w, simple, price.List(), plan.Push).Lines
	i := slices.IndexFunc(lines, func(l plan.Line) bool { return l.Price == "alert_conditions" })
	if i < 0 || lines[i].Quantity != float64(made+3) {
		t.Errorf("the bill has %+v, and three hosts have %d conditions", lines[i], made+3)
	}
}
