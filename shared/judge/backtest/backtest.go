// Package backtest judges strategies on past events: how high would each of
// them have ranked the objects that users turned to next?
//
// A Log holds events and objects in dense form. Cases are the instants of the
// log that a protocol judges, each with what the user had done before and what
// they did then. A strategy, or a baseline, orders the candidates of each case,
// and a Result says how high the relevant ones stand. Cases are prepared once
// and judge many strategies.
//
// The package does no I/O and keeps nothing. The caller reads events and
// objects from files or from an app's log.
package backtest

import (
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/fault"
)

// Event is one event of a user, as the log holds it.
type Event struct {
	User string
	Time int64 // ms since the epoch
	// ID is the event's ID, at most 12 bytes. Events of one user, time and ID are
	// one event.
	ID   string
	Type event.Type
	Name string
	// Index of ObjectIDs. An event of another index than the judged one counts
	// for its Filters only.
	Index     string
	ObjectIDs []string
	Filters   []event.Filter // of an event that names filters instead of objects
}

// Object is one object of the judged index.
type Object struct {
	ID      string
	Filters []event.Filter // distinct, sorted by facet and value, as catalog.Filters returns them
	// Dates are the dates in the object's record, in ms, by attribute: those that
	// the freshness of a judged ranking may go by.
	Dates map[string]int64
}

// Protocol says which instants of a user are cases. An instant is all judged
// events of a user at one time.
type Protocol string

// The protocols.
const (
	Last    Protocol = "last"    // the user's last instant, if it is at or after the cut
	Rolling Protocol = "rolling" // every instant at or after the cut
)

// Limits and defaults of Options.
const (
	DefaultAt = 10
	MaxAt     = 1000
)

// Options say how to judge.
type Options struct {
	Protocol Protocol // default Last
	At       int      // the length of the top list; default DefaultAt
	// Within names a facet. Cases restricts the candidates to objects that share
	// a value of it with the objects of the judged instant: about what a page of
	// a category shows. Log.Judge judges both ways, and if Within is empty it
	// finds the facet (see Log.Category). None: all objects alone.
	Within string
	Sample int // the most cases to judge, chosen by a hash of the user; 0: all
}

// None is the facet of Options that restricts nothing.
const None = "none"

// Validate returns the fault of the options, a *fault.Error, or nil.
func (o Options) Validate() error {
	_, err := o.withDefaults()
	return err
}

func (o Options) withDefaults() (Options, error) {
	if o.Protocol == "" {
		o.Protocol = Last
	}
	if o.At == 0 {
		o.At = DefaultAt
	}
	switch {
	case o.Protocol != Last && o.Protocol != Rolling:
		return o, refuse("the protocol must be %q or %q, got %q", Last, Rolling, o.Protocol)
	case o.At < 1 || o.At > MaxAt:
		return o, refuse("the length of the top list must be from 1 to %d, got %d", MaxAt, o.At)
	case o.Sample < 0:
		return o, refuse("the sample must be 1 case or more, got %d", o.Sample)
	}
	return o, nil
}

// refuse returns the error for data or options that nothing can be judged on.
func refuse(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...)
}
