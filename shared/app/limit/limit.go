package limit

import (
	"cmp"
	"fmt"
	"time"
)

// Numbers are the limits of an app. A zero is the default of the deployment.
type Numbers struct {
	// EventsPerSecond is how many events ingest accepts per second without delay.
	// Beyond it they go to the slow lane, and beyond twice as many they are refused.
	EventsPerSecond int `json:"eventsPerSecond,omitempty"`
	// ImportsPerSecond is how many events an app may import per second.
	ImportsPerSecond int `json:"importsPerSecond,omitempty"`
	// ReadsPerSecond is how many requests of all other routes an app may send per
	// second. A batch of profiles counts each of its users.
	ReadsPerSecond int `json:"readsPerSecond,omitempty"`
	// JobsPerHour is how many jobs an app may start per hour.
	JobsPerHour int `json:"jobsPerHour,omitempty"`
	// StrategiesPerHour is how often an app may set its strategy per hour.
	StrategiesPerHour int `json:"strategiesPerHour,omitempty"`
	// UserEventsPerDay is how many events of one user count per day (UTC, by time
	// of receipt). Later ones are accepted and not applied.
	UserEventsPerDay int `json:"userEventsPerDay,omitempty"`
	// WriteWindowMs is how long the events of a user wait for one write of their
	// profile, in ms, at most maxWriteWindow. Reads count them at once. 0: each message
	// writes the profiles of its users.
	WriteWindowMs int `json:"writeWindowMs,omitempty"`
}

// maxWriteWindow is the longest write window.
const maxWriteWindow = time.Minute

// WriteWindow returns the write window.
func (n Numbers) WriteWindow() time.Duration {
	return time.Duration(n.WriteWindowMs) * time.Millisecond
}

// Defaults are the limits of an app that has no others, in a deployment. A local
// engine permits fewer events per second, see package stack.
var Defaults = Numbers{
	EventsPerSecond:   5_000,
	ImportsPerSecond:  50_000,
	ReadsPerSecond:    2_000,
	JobsPerHour:       100,
	StrategiesPerHour: 100,
	UserEventsPerDay:  50_000,
}

// Max is the highest number of a limit.
const Max = 1_000_000_000

// Or returns the numbers with those of d in place of zeros.
func (n Numbers) Or(d Numbers) Numbers {
	return Numbers{
		EventsPerSecond:   cmp.Or(n.EventsPerSecond, d.EventsPerSecond),
		ImportsPerSecond:  cmp.Or(n.ImportsPerSecond, d.ImportsPerSecond),
		ReadsPerSecond:    cmp.Or(n.ReadsPerSecond, d.ReadsPerSecond),
		JobsPerHour:       cmp.Or(n.JobsPerHour, d.JobsPerHour),
		StrategiesPerHour: cmp.Or(n.StrategiesPerHour, d.StrategiesPerHour),
		UserEventsPerDay:  cmp.Or(n.UserEventsPerDay, d.UserEventsPerDay),
		WriteWindowMs:     cmp.Or(n.WriteWindowMs, d.WriteWindowMs),
	}
}

// Check refuses numbers below 0 and above Max, and windows above maxWriteWindow.
func (n Numbers) Check() error {
	for _, one := range []struct {
		name string
		n    int
	}{
		{"eventsPerSecond", n.EventsPerSecond}, {"importsPerSecond", n.ImportsPerSecond},
		{"readsPerSecond", n.ReadsPerSecond},
		{"jobsPerHour", n.JobsPerHour}, {"strategiesPerHour", n.StrategiesPerHour}, {"userEventsPerDay", n.UserEventsPerDay},
	} {
		if one.n < 0 || one.n > Max {
			return fmt.Errorf("limit %s of %d: want 1 to %d, or 0 for the default", one.name, one.n, Max)
		}
	}
	if w := n.WriteWindow(); w < 0 || w > maxWriteWindow {
		return fmt.Errorf("write window of %s: want 0s to %s", w, maxWriteWindow)
	}
	return nil
}

// Kind is what a limit counts.
type Kind string

// The kinds of limits that Take counts.
const (
	Reads      Kind = "reads"
	Imports    Kind = "imported events"
	Jobs       Kind = "jobs"
	Strategies Kind = "strategies"
	// Nothing is for requests that count in another way, or not at all.
	Nothing Kind = "nothing"

	events Kind = "events" // see Limiter.Events
)

// perSecond are the kinds that are limited per second, and so exchanged as rates.
var perSecond = []Kind{events, Imports, Reads}

// of returns the number of a kind, and whether it is per hour; else it is per
// second.
func (k Kind) of(n Numbers) (limit int, perHour bool) {
	switch k {
	case Reads:
		return n.ReadsPerSecond, false
	case Imports:
		return n.ImportsPerSecond, false
	case Jobs:
		return n.JobsPerHour, true
	case Strategies:
		return n.StrategiesPerHour, true
	}
	return n.EventsPerSecond, false
}

// State is what is left of a limit.
type State struct {
	Limit     int       // per second or per hour
	Remaining int       // of it, now
	Reset     time.Time // when all of it is there again
}

// Retry bounds the time in seconds after which a refused client is asked to send
// a request again. Clients wait as long as the answer says.
const (
	MinRetry = 1
	MaxRetry = 10
)

// Refused is the error of a request over a limit.
type Refused struct {
	// State is that of the limit; zero for a limit of requests at a time.
	State
	RetryAfter int // in seconds, MinRetry to MaxRetry
	message    string
}

// Error says which limit it is.
func (r *Refused) Error() string { return r.message }

// refuse returns the error of a request that may succeed after a wait.
func refuse(s State, wait time.Duration, format string, args ...any) *Refused {
	seconds := int((wait + time.Second - 1) / time.Second)
	return &Refused{State: s, RetryAfter: min(max(seconds, MinRetry), MaxRetry), message: fmt.Sprintf(format, args...)}
}
