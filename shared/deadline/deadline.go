// Package deadline bounds how long a request or a task may act on what it has read. Work
// ends at one instant of the wall clock, which is fixed when the work begins. Package
// store looks at it before each request to Bigtable. So what a request has started and
// left behind ends with it, and a process that was suspended and wakes later sends
// nothing that others no longer expect.
//
// The end stays in a context that package context has detached (WithoutCancel), because
// it is a value. The package keeps no data.
package deadline

import (
	"context"
	"errors"
	"time"
)

// Longest is how long a request or a task lives. No function has a longer timeout, see
// terraform/sizes.tf. Code that waits for Longest after a change of the configuration, and
// for the time that caches keep it, knows that nobody acts on the earlier one.
const Longest = 10 * time.Minute

// ErrOver says that the time of a request or a task is over.
var ErrOver = errors.New("the request has run for too long and may send nothing more")

type endKey struct{}

// Begin returns a context that ends within life, which is at most Longest. If ctx ends
// earlier, so does the returned context.
func Begin(ctx context.Context, life time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(min(life, Longest))
	if earlier, ok := End(ctx); ok && earlier.Before(end) {
		end = earlier
	}
	// Without its monotonic part, a time is one of the wall clock: the other clock may stand
	// still while a machine is suspended.
	return context.WithDeadline(context.WithValue(ctx, endKey{}, end.Round(0)), end)
}

// Detach returns a context that goes on when ctx is cancelled, and ends within longest. It ends
// with the work of ctx at the latest, and takes what is under way then with it.
func Detach(ctx context.Context, longest time.Duration) (context.Context, context.CancelFunc) {
	return Begin(context.WithoutCancel(ctx), longest)
}

// End returns when the work of ctx ends, if it has begun with Begin.
func End(ctx context.Context) (time.Time, bool) {
	end, ok := ctx.Value(endKey{}).(time.Time)
	return end, ok
}

// Check returns ErrOver if the work of ctx is over at an instant.
func Check(ctx context.Context, now time.Time) error {
	if end, ok := End(ctx); ok && !now.Round(0).Before(end) {
		return ErrOver
	}
	return nil
}
