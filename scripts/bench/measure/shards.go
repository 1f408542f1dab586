package measure

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Users of one request: of rows by event, some ten thousand rows; of histories, as many as the engine takes at once.
const (
	logShard     = 25
	historyShard = 256
)

// logShard is how many users' rows one request is for: fewer where there would be nothing to do for some of the workers.
func (d *dataset) logShard() int { return max(1, min(logShard, d.users/workers())) }

// span is users from one up to, not including, another.
type span struct{ from, to int }

// eachShard hands all users, some at a time, to as many workers as there are processors. Each worker is made by newWorker.
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
