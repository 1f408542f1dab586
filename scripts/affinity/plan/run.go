package plan

import (
	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/judge/price"
)

// Function is what Cloud Run asks in a month for one function that clients or messages reach.
type Function struct {
	Name string `json:"name"`
	// ByRequests is the cost of an instance while it serves a request, and a fee for each, in USD. ByInstances is that
	// of every instance while it exists. Both are nil while a price is unknown.
	ByRequests  *float64 `json:"byRequests"`
	ByInstances *float64 `json:"byInstances"`
	// Billing is which of them is in the bill: "requests" or "instances", as in functions of Terraform.
	Billing string `json:"billing"`

	perSecond, cpu, memory float64
}

// The billings of a function.
const (
	requestsBilled  = "requests"
	instancesBilled = "instances"
)

// PerSecond returns how many requests or messages a function serves a second, on average.
func (fn Function) PerSecond() float64 { return fn.perSecond }

// vcpu returns how many instances of one vCPU are billed on average.
func (fn Function) vcpu(billing string) float64 {
	if billing == instancesBilled {
		return always(fn.perSecond, fn.cpu)
	}
	return instances(fn.perSecond, fn.cpu)
}

// cost returns what a function costs in a month, or nil while a price is unknown.
func (fn Function) cost(billing string, p price.Prices) *float64 {
	cpu := "run_cpu"
	if billing == instancesBilled {
		cpu = "run_cpu_instance"
	}
	perCPU, known := p.USD(cpu)
	perGiB, alsoKnown := p.USD("run_memory")
	fee, feeKnown := p.USD("run_requests")
	if !known || !alsoKnown || !feeKnown {
		return nil
	}
	usd := fn.vcpu(billing) * monthSeconds * (perCPU + fn.memory*perGiB)
	if billing == requestsBilled {
		usd += fn.perSecond * monthSeconds / 1e6 * fee
	}
	return &usd
}

// Saves returns what a function would cost less by instances than by requests: 0 if it would not, or is billed so
// already.
func (fn Function) Saves() float64 {
	if fn.Billing != requestsBilled || fn.ByRequests == nil || fn.ByInstances == nil {
		return 0
	}
	return max(0, *fn.ByRequests-*fn.ByInstances)
}

// ingestShare is the part of the CPU of a message of one request that ingest takes.
const ingestShare = 0.2

// functions returns the functions that clients and messages reach, with their billing.
func (b *Bill) functions(d Delivery, p price.Prices) []Function {
	f := b.Figures
	r := b.Workload.rates(f)
	all := []Function{
		{Name: "ingest", perSecond: r.requests, cpu: b.Workload.ingestCPU(f), memory: ingestMemory},
		{Name: "profiles", perSecond: r.reads, cpu: f.ReadCPU, memory: profilesMemory},
		{Name: "process", perSecond: r.messages, cpu: b.Workload.processCPU(r, f) / r.messages, memory: processMemory},
	}
	if d == Pull {
		all = all[:2]
	}
	for i := range all {
		fn := &all[i]
		fn.ByRequests, fn.ByInstances, fn.Billing = fn.cost(requestsBilled, p), fn.cost(instancesBilled, p), requestsBilled
		if b.Workload.Kept.Billing[fn.Name] == instancesBilled || d == Instances || d == Cheapest && fn.Saves() > 0 {
			fn.Billing = instancesBilled
		}
	}
	return all
}

// compute adds Cloud Run.
func (b *Bill) compute(add adder, d Delivery, p price.Prices) {
	b.Functions = b.functions(d, p)
	if d == Pull {
		r := b.Workload.rates(b.Figures)
		pool := always(r.messages, b.Workload.processCPU(r, b.Figures)/r.messages)
		b.Needs.VCPU += pool
		add("CPU of the worker pool in place of process", pool*monthSeconds, "run_cpu_instance")
		add("its memory", pool*processMemory*monthSeconds, "run_memory")
	}
	var fees float64 // requests that are billed
	b.instances(add, requestsBilled, "run_cpu")
	b.instances(add, instancesBilled, "run_cpu_instance")
	b.warm(add)
	night := b.Needs.Recompute.CoreSeconds * MonthDays
	add("CPU of worker, at night", night, "run_cpu")
	add("its memory", night*workerMemory, "run_memory")
	for _, fn := range b.Functions {
		n := fn.perSecond * monthSeconds
		if b.Needs.Requests += n; fn.Billing == requestsBilled {
			fees += n
		}
	}
	if fees > 0 {
		add("requests and pushes", fees/1e6, "run_requests")
	}
}

// instances adds the functions of a billing.
func (b *Bill) instances(add adder, billing, price string) {
	var names []string
	var vcpu, gibs float64
	for _, fn := range b.Functions {
		if fn.Billing == billing {
			names = append(names, fn.Name)
			vcpu += fn.vcpu(billing)
			gibs += fn.vcpu(billing) * fn.memory
		}
	}
	if len(names) == 0 {
		return
	}
	b.Needs.VCPU += vcpu
	add("CPU of "+cli.List(names), vcpu*monthSeconds, price)
	add("their memory", gibs*monthSeconds, "run_memory")
}
