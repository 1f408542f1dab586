package job

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Queued are the names of the collections whose jobs share the queues of tasks.
var Queued = []string{
	"backtests", "crowds", "dateRows", "linkPreviews", "migrations", "moves", "recomputes", "reenrichments",
	"reports", "residents", "segmentBuilds", "segmentExports",
}

// Before returns how many unfinished jobs of all apps are before a job in its queue:
// those of the given stores whose first task was due earlier.
func Before(ctx context.Context, j Job, stores ...Jobs) (int, error) {
	counts := make([]int, len(stores))
	g, ctx := errgroup.WithContext(ctx)
	for i, s := range stores {
		g.Go(func() (err error) {
			counts[i], err = s.Before(ctx, j.Queue, j.QueuedAt)
			return err
		})
	}
	err := g.Wait()
	before := 0
	for _, n := range counts {
		before += n
	}
	return before, err
}
