package plan

import (
	"math"

	"github.com/affinityengine/affinity/shared/judge/price"
)

// Machine is one machine with `affinity serve`, in place of a deployment.
type Machine struct {
	// Type is the smallest type of Compute Engine that is large enough; empty: none of the types that the model knows is.
	Type string `json:"type"`
	// Cores are those that requests and messages take in the busiest minute.
	Cores float64 `json:"cores"`
	// DiskGiB is the size of the disk with the data.
	DiskGiB float64 `json:"diskGiB"`
	// UpTo is how many events a day the largest type serves, with as many reads and users an event.
	UpTo float64 `json:"upTo"`
	// Lines are the items of its bill; none without a type.
	Lines []Line `json:"lines,omitempty"`
	// Sum is that of the lines with a price, in USD.
	Sum float64 `json:"sum"`
}

// machineTypes are types of E2, with the parts of a core that Google promises all the time. A process with more cores
// was not measured.
var machineTypes = []struct {
	name string
	vcpu float64
}{{"e2-small", 0.5}, {"e2-medium", 1}, {"e2-standard-2", 2}}

const (
	// diskCopies is the room for the data, for their backups on the same disk, and for compactions of both, as a multiple.
	diskCopies = 3.0
	// leastDiskGiB is disk_gb of terraform/single, and bootDiskGiB the disk with the system.
	leastDiskGiB = 20.0
	bootDiskGiB  = 10.0
)

// machineCores returns the cores that a machine needs in the busiest minute, used to the same part as instances.
func (w Workload) machineCores(f Figures) float64 {
	r := w.rates(f)
	return w.Peak * (r.requests*w.ingestCPU(f) + w.processCPU(r, f) + r.reads*f.ReadCPU)
}

// ComputeMachine returns the machine for a workload, which Check accepts. The figures of the engine are those of one
// process with its database, so that they hold for it without a change.
func ComputeMachine(w Workload, f Figures, p price.Prices) Machine {
	largest := machineTypes[len(machineTypes)-1]
	m := Machine{Cores: w.machineCores(f)}
	m.UpTo = w.EventsPerDay * busy * largest.vcpu / m.Cores
	log, histories, users := w.storage(f)
	data := log + histories + users
	m.DiskGiB = math.Max(leastDiskGiB, math.Ceil(diskCopies*data))
	for _, t := range machineTypes {
		if m.Cores > busy*t.vcpu {
			continue
		}
		m.Type = t.name
		add := adding(&m.Lines, &m.Sum, p)
		add("the machine, "+t.name, 730*t.vcpu, "vm_vcpu")
		add("its disks", m.DiskGiB+bootDiskGiB, "vm_disk")
		add("snapshots of its data", data, "vm_snapshots")
		add("its address", 730, "vm_address")
		break
	}
	return m
}
