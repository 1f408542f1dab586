package plan

import "math"

// Kept is what a deployment keeps whether the load needs it or not.
type Kept struct {
	// MinNodes are the least numbers of nodes, one for each cluster. Nil: 1 each.
	MinNodes []float64 `json:"minNodes,omitempty"`
	// Warm are the instances of functions that are kept.
	Warm []Warm `json:"warm,omitempty"`
	// Billing is that of functions for which it is set, by name: "requests" or "instances".
	Billing map[string]string `json:"billing,omitempty"`
}

// Warm are instances of a function that are kept.
type Warm struct {
	Function  string  `json:"function"`
	Instances float64 `json:"instances"`
	VCPU      float64 `json:"vCPU"` // of one
	GiB       float64 `json:"gib"`  // of one
}

// nodes returns the nodes of all clusters, of which the load and the storage need so many each.
func (k Kept) nodes(needed, clusters float64) float64 {
	if len(k.MinNodes) == 0 {
		return needed * clusters
	}
	var all float64
	for _, least := range k.MinNodes {
		all += math.Max(least, needed)
	}
	return all
}

// warm adds the instances that are kept, for the time in which they wait. The load keeps some of those of a function
// busy, and its own lines have these.
func (b *Bill) warm(add adder) {
	idle := map[string][2]float64{} // vCPU and GiB by price of the CPU
	for _, w := range b.Workload.Kept.Warm {
		waiting, price := w.Instances, "run_cpu_idle"
		if b.Workload.Kept.Billing[w.Function] == instancesBilled {
			price = "run_cpu_instance"
		}
		for _, fn := range b.Functions {
			if fn.Name == w.Function {
				waiting = math.Max(0, waiting-fn.vcpu(fn.Billing))
			}
		}
		sum := idle[price]
		idle[price] = [2]float64{sum[0] + waiting*w.VCPU, sum[1] + waiting*w.GiB}
	}
	for _, price := range []string{"run_cpu_idle", "run_cpu_instance"} {
		if n := idle[price]; n[0] > 0 {
			memory := map[string]string{"run_cpu_idle": "run_memory_idle", "run_cpu_instance": "run_memory"}[price]
			add("CPU of warm instances that wait", n[0]*monthSeconds, price)
			add("their memory", n[1]*monthSeconds, memory)
		}
	}
}
