package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// Retry says how to repeat requests that got no answer, or an answer that says
// they may succeed later (429, and 500 and above). Waits double from First to Max,
// each shortened at random by up to half; the engine's Retry-After goes before.
//
// A request is repeated only if that does no harm. Methods that never repeat say
// so. The first request of all is not repeated if nothing is at the address.
type Retry struct {
	First time.Duration // default: 200 ms
	Max   time.Duration // default: 5 s
	// Total is how long to try. Default: a minute. Below zero: a request is never
	// repeated.
	Total time.Duration
	// Notify is called before each wait with the error of the attempt; it may be
	// nil.
	Notify func(err error, wait time.Duration)
}

// NoRetry sends every request once.
var NoRetry = Retry{Total: -1}

func (r Retry) orDefault() Retry {
	r.First = cmp.Or(r.First, 200*time.Millisecond)
	r.Max = cmp.Or(r.Max, 5*time.Second)
	r.Total = cmp.Or(r.Total, time.Minute)
	return r
}

// repeat says when a request may be repeated.
type repeat int

const (
	// never: what a repeated request does depends on what the first one did.
	never repeat = iota
	// refused: only if the engine answered that it has not taken the request.
	refused
	// always: a repeated request does no harm.
	always
)

// permits reports whether a request that failed with err may be repeated.
func (r repeat) permits(err error) bool {
	var said *api.Error
	var silent *UnreachableError
	switch {
	case r == never:
		return false
	case errors.As(err, &said):
		return said.Temporary() && (r == always || said.Status == http.StatusTooManyRequests || said.Status == http.StatusServiceUnavailable)
	case errors.As(err, &silent):
		return r == always && silent.There
	}
	return false
}

// repeat calls until call succeeds, fails for good, or the time is up.
func (c *Client) repeat(ctx context.Context, when repeat, call func() error) error {
	begun := time.Now()
	for wait := c.retry.First; ; wait = min(2*wait, c.retry.Max) {
		err := call()
		if err == nil || c.retry.Total < 0 || !when.permits(err) {
			return err
		}
		pause := wait - rand.N(wait/2+1) // so that requests in flight do not come back together
		var said *api.Error
		if errors.As(err, &said) && said.RetryAfter > 0 {
			pause = said.RetryAfter
		}
		if time.Since(begun)+pause > c.retry.Total {
			return fmt.Errorf("gave up after trying again for %s: %w", c.retry.Total, err)
		}
		if c.retry.Notify != nil {
			c.retry.Notify(err, pause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
