package preview

import (
	"math"

	"github.com/affinityengine/affinity/shared/judge/price"
)

// What a recompute takes, as `affinity bench recompute` measures it (functions/docs/operate/costs.md).
const (
	UserCPU  = 14e-6  // s, for a user of few events, with writes
	EventCPU = 0.1e-6 // s
)

// Million is the number of users of a Cost if nobody has counted those of the app.
const Million = 1_000_000

// Cost is what a recompute of some users takes on the worker: events, CPU, and its price.
type Cost struct {
	Users      int
	Events     int
	CPUSeconds float64
	USD        float64
}

// Extrapolate returns what a recompute of so many users takes if they are like those of a
// preview, who have so many events.
func Extrapolate(users, known, events int) Cost {
	n, all := float64(users), float64(users)*float64(events)/float64(known)
	cpu := n*UserCPU + all*EventCPU
	second, _ := price.List().USD("run_cpu") // TestPreviewsCostAsPlansDo holds that it is known
	return Cost{Users: users, Events: int(math.Round(all)), CPUSeconds: math.Round(cpu*1e3) / 1e3,
		USD: math.Round(cpu*second*1e6) / 1e6}
}
