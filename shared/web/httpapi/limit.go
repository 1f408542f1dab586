package httpapi

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/affinityengine/affinity/shared/app/limit"
)

// Names of the headers that say what is left of a limit, as net/http writes them.
const (
	limitHeader     = "X-Ratelimit-Limit"
	remainingHeader = "X-Ratelimit-Remaining"
	resetHeader     = "X-Ratelimit-Reset" // in seconds since 1970
)

// WriteLimit adds what is left of a limit to the header of an answer.
func WriteLimit(h http.Header, s limit.State) {
	values := [3]string{strconv.Itoa(s.Limit), strconv.Itoa(s.Remaining),
		strconv.FormatInt((s.Reset.UnixMilli()+999)/1000, 10)}
	h[limitHeader], h[remainingHeader], h[resetHeader] = values[0:1:1], values[1:2:2], values[2:3:3]
}

// limited returns the refusal that an error holds, or nil.
func limited(err error) *limit.Refused {
	var refused *limit.Refused
	errors.As(err, &refused)
	return refused
}

// writeRetry says in a header when a request that was answered 429 may succeed.
func writeRetry(h http.Header, err error) {
	// At random, so that the clients of one instance do not return at once.
	wait := limit.MinRetry + rand.IntN(limit.MaxRetry)
	if refused := limited(err); refused != nil {
		wait = refused.RetryAfter
		if refused.Limit > 0 {
			WriteLimit(h, refused.State)
		}
	}
	h.Set("Retry-After", strconv.Itoa(wait))
}
