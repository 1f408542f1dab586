package preview

import "math"

// What a recompute takes, as `affinity bench recompute` measures it (terraform/COSTS.md), and
// the price of a second of a vCPU on Cloud Run in europe-west1.
const (
	UserCPU   = 14e-6  // s, for a user of few events, with writes
	EventCPU  = 0.1e-6 // s
	SecondUSD = 0.000024
)

// Million is the number of users of a Cost if nobody has counted those of the app.
const Million = 1_000_000

// Cost is what a recompute of some users takes on the worker: CPU, and its price.
type Cost struct {
	Users      int
	CPUSeconds float64
	USD        float64
}

// Extrapolate returns what a recompute of so many users takes if they are like those of a
// preview, who have so many events.
func Extrapolate(users, known, events int) Cost {
	n := float64(users)
	cpu := n*UserCPU + n*float64(events)/float64(known)*EventCPU
	return Cost{Users: users, CPUSeconds: math.Round(cpu*1e3) / 1e3, USD: math.Round(cpu*SecondUSD*1e6) / 1e6}
}
