package measure

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Users per request. For the log that is some ten thousand rows; for histories, as
// many as the engine reads at once.
const (
	logShard     = 25
	historyShard = 256
)

// logShard is how many users' rows one request reads: fewer if some workers would
// have nothing to do.
func (d *dataset) logShard() int { return max(1, min(logShard, d.users/workers())) }

// span is the users from from up to, not including, to.
type span struct{ from, to int }

// eachShard passes all users, a shard at a time, to a worker per processor.
// newWorker makes each worker.
func eachShard(ctx context.Context, users, size int, newWorker func() func(context.Context, span) error) error {
	return share(ctx, workers(), users, size, newWorker)
}

// share is eachShard with another number of workers.
func share(ctx context.Context, workers, users, size int, newWorker func() func(context.Context, span) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range workers {
		work := newWorker()
		g.Go(func() error {
			for {
				to := int(next.Add(int64(size)))
				if to-size >= users {
					return nil
				}
				if err := work(ctx, span{to - size, min(to, users)}); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func workers() int { return runtime.GOMAXPROCS(0) }
