package api

import (
	"fmt"
	"time"
)

// Error is a refusal: the answer to every request that did not succeed.
//
//	400  the body is not JSON, or not of the form that the route asks for
//	401  the app and the key do not belong together
//	403  the key lacks the permission that the route needs, or the host serves another app
//	404  no such path, user, object or job
//	405  the path does not take this method
//	409  the step is not possible in the present state; the message says what is
//	408  the body arrived too slowly
//	413  the body, or a part of it, is too large
//	415  the Content-Encoding is neither gzip nor absent
//	422  the body is JSON of the right form and breaks a rule
//	429  the instance has no memory for the request; the same request may succeed later
//	500  a fault of the engine
//	503  a backend is unavailable; the same request may succeed later
//
// Statuses from 400 to 499 are final, except for 408 and 429: the same request is
// refused again. A proxy before the engine may answer 429, too.
type Error struct {
	Status  int    `json:"status"`  // the HTTP status
	Message string `json:"message"` // fit to show to a person
	// Field names the field of the body whose value has the wrong type, where the message
	// does not; absent for other faults.
	Field string `json:"field,omitempty"`
	// Hint says what the engine saw, or what the caller can do, beside a message whose
	// words are fixed.
	Hint string `json:"hint,omitempty"`
	// Others are the messages of further faults of the request.
	Others []string `json:"others,omitempty"`
	// RetryAfter is how long the engine asks clients to wait before they try
	// again, from the header Retry-After. 0 if the header is absent.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the status and the message, with the other ones on lines of their own.
func (e *Error) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Message)
	if e.Field != "" {
		text += " (" + e.Field + ")"
	}
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	for _, other := range e.Others {
		text += "\n" + other
	}
	return text
}

// Temporary reports whether the same request may succeed later: status 408, 429,
// and 500 and above.
func (e *Error) Temporary() bool { return e.Status == 408 || e.Status == 429 || e.Status >= 500 }
