package recompute

import "time"

// Checkpointing makes a runner write its checkpoints so often, and tell the time
// of configurations by a clock.
func (r *Runner) Checkpointing(every time.Duration, clock func() time.Time) *Runner {
	r.every, r.clock = every, clock
	return r
}
