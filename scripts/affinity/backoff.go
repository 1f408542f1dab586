package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// backoff says how to try again: waits that double from first to most, until total has gone by.
type backoff struct{ first, most, total time.Duration }

// retry calls until it succeeds, fails for good, or b.total has gone by. Only for requests that do no harm when repeated. It tells each
// wait to notice.
func (b backoff) retry(ctx context.Context, notice func(error, time.Duration), call func() error) error {
	begun := time.Now()
	for wait := b.first; ; wait = min(2*wait, b.most) {
		err := call()
		if err == nil || !passing(err) {
			return err
		}
		pause := wait/2 + time.Duration(rand.Int64N(int64(wait/2)+1)) // so that requests in flight do not come back together
		var refused *refusedError
		if errors.As(err, &refused) && refused.retryAfter > 0 {
			pause = refused.retryAfter
		}
		if time.Since(begun)+pause > b.total {
			return fmt.Errorf("gave up after trying again for %s: %w", b.total, err)
		}
		notice(err, pause)
		if err := cli.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// passing tells whether the same request may succeed later. Where nothing ever answered there is more likely nothing.
func passing(err error) bool {
	var silent *unreachableError
	if errors.As(err, &silent) {
		return silent.there
	}
	status := statusOf(err)
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// sleep waits, or returns the context's error when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// waiting tells that a request is tried again.
func (t *tool) waiting(err error, pause time.Duration) {
	fmt.Fprintf(t.err, "%v; trying again in %s\n", err, pause.Round(time.Millisecond))
}
