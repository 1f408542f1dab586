package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/affinityengine/affinity/shared/admission"
)

const (
	// turnWait is how long a message waits for its turn. No other begins while one waits to
	// be alone, so it must not wait for a slow one.
	turnWait = 30 * time.Second
	// turnTime is how long a message may be applied alone.
	turnTime = 2 * time.Minute
)

// turns lets deliveries run side by side, or one of them alone in the process. The
// zero value is ready.
type turns struct {
	once sync.Once
	free *semaphore.Weighted
}

// allTurns is more than the deliveries that a process handles at the same time.
const allTurns = 1 << 20

func (t *turns) take(ctx context.Context, n int64) (leave func(), err error) {
	t.once.Do(func() { t.free = semaphore.NewWeighted(allTurns) })
	wait := turnWait
	if end, ok := ctx.Deadline(); ok {
		// A turn without time to use it would keep others waiting for nothing.
		wait = min(wait, time.Until(end)/2)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := t.free.Acquire(waiting, n); err != nil {
		return nil, errors.Join(admission.ErrFull, fmt.Errorf("wait for other messages: %w", err))
	}
	return func() { t.free.Release(n) }, nil
}

// beside waits until no delivery runs alone.
func (t *turns) beside(ctx context.Context) (leave func(), err error) { return t.take(ctx, 1) }

// alone waits until no other delivery runs. Then it keeps others from beginning, for
// as long as the returned context lasts at most. With that context nothing is taken
// from the gate of the process: those who wait for their turn hold most of it, and
// have decoded nothing yet.
func (t *turns) alone(ctx context.Context) (turn context.Context, leave func(), err error) {
	free, err := t.take(ctx, allTurns)
	if err != nil {
		return nil, nil, err
	}
	turn, end := context.WithTimeout(admission.Exempt(ctx), turnTime)
	return turn, func() { end(); free() }, nil
}
