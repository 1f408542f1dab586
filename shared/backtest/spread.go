package backtest

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// stride is how many pieces of work a goroutine takes at a time.
const stride = 16

// spread calls the functions that worker returns with each number below n, one
// of them in each of as many goroutines as there are processors.
func spread(n int, worker func() func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+stride-1)/stride) {
		work := worker()
		group.Go(func() {
			for {
				end := int(next.Add(stride))
				for i := end - stride; i < min(end, n); i++ {
					work(i)
				}
				if end >= n {
					return
				}
			}
		})
	}
	group.Wait()
}
