package admission

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Heavy is the size in bytes of a body from which a request takes a turn. A body of a
// hundred events has less.
const Heavy = 256 << 10

// turns is an item for each heavy request that computes.
type turns chan struct{}

// process are the turns of this process. Go's scheduler gives each request that
// computes some milliseconds in turn, so a small one among a hundred heavy ones would
// wait for seconds.
var process = make(turns, max(2, runtime.GOMAXPROCS(0)))

// Turn waits until a heavy request may compute, at most for the given time. end gives
// the turn to another one. It returns ErrFull if the time is over, and the context's
// error if that ends first. A request must not take two turns.
func Turn(ctx context.Context, wait time.Duration) (end func(), err error) {
	return process.take(ctx, wait)
}

func (t turns) take(ctx context.Context, wait time.Duration) (end func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-waiting.Done():
		if ctx.Err() != nil {
			return nil, fmt.Errorf("wait for a turn: %w", ctx.Err())
		}
		return nil, ErrFull
	}
}
