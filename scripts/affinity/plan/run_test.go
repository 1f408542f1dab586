package plan_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/scripts/affinity/plan"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// Pull saves the pushes and pays for an instance that waits. Instances that are billed
// while they exist pay nothing for requests.
func TestDeliveries(t *testing.T) {
	prices := price.List()
	push, pull := plan.Compute(small, simple, prices, plan.Push), plan.Compute(small, simple, prices, plan.Pull)
	instances := plan.Compute(small, simple, prices, plan.Instances)
	if push.Needs.Requests != 30*2_628_000 || pull.Needs.Requests != 20*2_628_000 || instances.Needs.Requests != push.Needs.Requests {
		t.Errorf("requests: push %v, pull %v, instances %v", push.Needs.Requests, pull.Needs.Requests, instances.Needs.Requests)
	}
	if i := slices.IndexFunc(instances.Lines, func(l plan.Line) bool { return l.Price == "run_requests" }); i >= 0 {
		t.Errorf("instances pay for requests: %+v", instances.Lines[i])
	}
	// Each takes one busy instance, and costs 47.30 for the CPU and 3.29 or 6.57 for the memory.
	for i, want := range []float64{50.59, 50.59, 53.87} {
		if got := instances.Functions[i]; math.Abs(dollars(got.ByInstances)-want) > 0.005 || got.Billing != "instances" || got.Saves() != 0 {
			t.Errorf("%s costs %v by instances, want %v", got.Name, dollars(got.ByInstances), want)
		}
	}
	for _, l := range pull.Lines {
		if strings.HasPrefix(l.What, "CPU of the worker pool") && (l.Quantity != 2_628_000 || *l.USD != 47.30) {
			t.Errorf("the worker pool costs %v for %v, want one vCPU all the time", *l.USD, l.Quantity)
		}
	}
}

// Of each function the billing is chosen that costs less, and the bill is the sum of what they cost.
func TestTheCheapestBilling(t *testing.T) {
	prices := price.List()
	w := small
	w.EventsPerDay, w.ReadsPerSecond = 432_000, 100 // profiles alone has fees worth an instance
	bills := map[plan.Delivery]plan.Bill{}
	for _, d := range []plan.Delivery{plan.Push, plan.Instances, plan.Cheapest} {
		bills[d] = plan.Compute(w, simple, prices, d)
		run := 0.0
		for _, l := range bills[d].Lines {
			if strings.HasPrefix(l.Price, "run_") && !strings.HasSuffix(l.What, "night") && l.What != "its memory" {
				run += *l.USD
			}
		}
		want := 0.0
		for _, fn := range bills[d].Functions {
			if fn.Billing == "requests" {
				want += *fn.ByRequests
			} else {
				want += *fn.ByInstances
			}
		}
		if math.Abs(run-want) > 0.03 {
			t.Errorf("%d: the lines of Cloud Run are %v, the functions %v", d, run, want)
		}
	}
	got := bills[plan.Cheapest]
	for i, want := range []string{"requests", "instances", "requests"} {
		if fn := got.Functions[i]; fn.Billing != want {
			t.Errorf("%s is billed by %s: %v by requests, %v by instances", fn.Name, fn.Billing, *fn.ByRequests, *fn.ByInstances)
		}
	}
	if got.Sum >= bills[plan.Push].Sum || got.Sum >= bills[plan.Instances].Sum {
		t.Errorf("the cheapest costs %v, requests %v, instances %v", got.Sum, bills[plan.Push].Sum, bills[plan.Instances].Sum)
	}
	if fn := bills[plan.Push].Functions[1]; math.Abs(fn.Saves()-(*fn.ByRequests-*fn.ByInstances)) > 1e-9 {
		t.Errorf("%+v saves %v", fn, fn.Saves())
	}
	prices[slices.IndexFunc(prices, func(p price.Price) bool { return p.Name == "run_cpu" })].USD = nil
	if fn := plan.Compute(w, simple, prices, plan.Cheapest).Functions[1]; fn.ByRequests != nil || fn.Billing != "requests" || fn.Saves() != 0 {
		t.Errorf("a function whose price is unknown is chosen to be billed by %s", fn.Billing)
	}
}
