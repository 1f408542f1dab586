package job

import "time"

const (
	// minRate is the shortest time at work that gives a rate: some checkpoints of
	// every shard under way.
	minRate = 2 * time.Second
	// maxEstimate is the longest time to the end that is an estimate at all.
	maxEstimate = 365 * 24 * time.Hour
)

// EndEstimate returns when a job with its current totals will have processed every
// user that its planning found, at the rate that it has had since. It returns the
// zero time if no rate is known: the job is not running, has processed no user, or has
// run for less than two seconds by the clock of now.
func (j Job) EndEstimate(now time.Time) time.Time {
	ran, left := now.Sub(j.RunningAt), j.Totals.PlannedUsers-j.Totals.Counts[CountUsers]
	if j.State != Running || j.RunningAt.IsZero() || ran < minRate || j.Totals.Counts[CountUsers] <= 0 || left <= 0 {
		return time.Time{}
	}
	wait := float64(ran) * float64(left) / float64(j.Totals.Counts[CountUsers])
	if wait > float64(maxEstimate) {
		return time.Time{}
	}
	return now.Add(time.Duration(wait))
}

// Due reports whether the job waits for its turn or works: it has not ended, and
// its first task is due.
func (j Job) Due(now time.Time) bool {
	return !j.State.Ended() && !j.QueuedAt.IsZero() && !now.Before(j.QueuedAt)
}
