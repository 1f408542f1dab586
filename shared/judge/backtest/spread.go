package backtest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// stride is how many pieces of work a goroutine takes at a time.
const stride = 16

// spread calls the functions that worker returns with each number below n, one
// of them in each of as many goroutines as there are processors. It stops before
// the next number once ctx ends, and returns the error of ctx.
func spread(ctx context.Context, n int, worker func() func(i int)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+stride-1)/stride) {
		work := worker()
		group.Go(func() {
			for {
				end := int(next.Add(stride))
				for i := end - stride; i < min(end, n) && ctx.Err() == nil; i++ {
					work(i)
				}
				if end >= n || ctx.Err() != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return ctx.Err()
}
