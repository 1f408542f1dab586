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

// Retry says how to repeat requests that got no answer, or status 408 or 429, or
// a status of 500 and above. Waits double from First to Max, and each is
// shortened at random by up to half. The engine's Retry-After takes precedence.
//
// A request is repeated only if that does no harm. Methods that never repeat
// one say so. The first request of a client is not repeated if no server is at
// the address.
type Retry struct {
	First time.Duration // default: 200 ms
	Max   time.Duration // default: 5 s
	// Total is how long to try. Default: a minute. If it is negative, no
	// request is repeated.
	Total time.Duration
	// Notify is called before each wait with the error of the attempt; it may
	// be nil.
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
	// never is for requests whose effect depends on whether the first one
	// succeeded.
	never repeat = iota
	// refused permits it only if the engine answered that it did not accept the
	// request.
	refused
	// always is for requests that do no harm when repeated.
	always
)

// permits reports whether a request that failed with err may be repeated.
func (r repeat) permits(err error) bool {
	var answered *api.Error
	var unreachable *UnreachableError
	switch {
	case r == never:
		return false
	case errors.As(err, &answered):
		return answered.Temporary() && (r == always || answered.Status == http.StatusTooManyRequests ||
			answered.Status == http.StatusServiceUnavailable)
	case errors.As(err, &unreachable):
		return r == always && unreachable.Reached
	}
	return false
}

// repeat calls call until it succeeds, fails in a way that must not be
// repeated, or the time is up.
func (c *Client) repeat(ctx context.Context, when repeat, call func() error) error {
	begun := time.Now()
	for wait := c.retry.First; ; wait = min(2*wait, c.retry.Max) {
		err := call()
		if err == nil || c.retry.Total < 0 || !when.permits(err) {
			return err
		}
		pause := wait - rand.N(wait/2+1) // so that concurrent requests are not repeated at once
		var answered *api.Error
		if errors.As(err, &answered) && answered.RetryAfter > 0 {
			pause = answered.RetryAfter
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
