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

// TurnWait is how long a client waits for a turn.
const TurnWait = 5 * time.Second

// AwaitTurn waits until the request, or the part of one, that the context belongs to may
// compute, at most for the given time. It has the turn until it ends. A request has one
// turn at most: while it has one, other calls return nil at once. If the time is over,
// AwaitTurn returns ErrFull, and if the context ends first, the context's error. Without
// a request in the context, it returns nil at once.
func AwaitTurn(ctx context.Context, wait time.Duration) error {
	p := partOf(ctx)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil || p.left || p.ended {
		return nil
	}
	if err := process.take(ctx, wait); err != nil {
		return err
	}
	p.turn = p
	return nil
}

// endTurn gives the turn of the part, if it has one, to another request.
func (p *part) endTurn() {
	if p.turn == p {
		<-process
		p.turn = nil
	}
}

func (t turns) take(ctx context.Context, wait time.Duration) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case t <- struct{}{}:
		return nil
	case <-waiting.Done():
		if ctx.Err() != nil {
			return fmt.Errorf("wait for a turn: %w", ctx.Err())
		}
		return ErrFull
	}
}
