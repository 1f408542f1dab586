// Package affinity computes a user's profile from their events. A profile is a
// pure function: at time T, each filter (a facet and a value) scores
//
//	score(filter, h, T) = sum over the events with T - retention < time <= T that are not deleted
//	                      of eventScore x facetScore x count x 2^-((T - time)/h)
//
// for a half-life of h. Without half-lives, events do not age and the
// score is the plain sum. A filter scores nothing, and no profile has it, if the strategy
// ignores its value, or allows other values of the facet alone. Both lists are about values
// after aliases.
//
// Reference computes the formula as it reads. Scorer computes the same function
// fast, and any reader of events can feed it; tests compare the two. Every path
// to a profile, streaming, batch or on read, ends in this package.
//
// A Session is the other function of the log in this package: the newest events
// that score. Collector finds them, and ReferenceSession is their definition.
//
// The package does no I/O. Events live in the log. Profiles and sessions live in
// the user row, beside the user's ticket, in the forms that their AppendBinary
// writes.
package affinity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Event holds the parts of an event that scoring needs, and the objects that the
// event names, which scoring ignores.
type Event struct {
	Time   int64 // ms since the epoch
	Type   event.Type
	Name   string
	Counts []Count
	// Index and ObjectIDs name the objects of the event, in the event's order.
	// Both are empty for an event by filters.
	Index     string
	ObjectIDs []string
}

// Count is the number of an event's objects that carry a filter. The filter is
// as the client sent it: aliases are not applied yet.
type Count struct {
	Facet, Value string
	N            int // 0 or less adds nothing
}

// Affinity is one filter of a profile with its scores: one for each half-life
// of the profile, in the profile's order, or one plain sum. Scores are never
// negative, and at least one of them is above zero.
type Affinity struct {
	Facet, Value string
	Scores       []float64
}

// Tombstone returns the tombstone under which the profile was computed.
func (p Profile) Tombstone() Tombstone { return Tombstone{p.DeletedUntil, p.ReceivedUntil} }

// Profile holds the affinities of one user as of Anchor. Profiles are
// immutable, so copies may share their slices.
type Profile struct {
	// StrategyVersion is a version of the app's strategy that scores as the
	// profile does: the version at which the scoring last changed. The caller sets it: a Scorer knows the strategy
	// but not its version.
	StrategyVersion int64
	RetentionDays   int // of the window; 0 = no limit
	// DeletedUntil is the tombstone of that window, in ms. After another
	// deletion the profile is no longer valid.
	DeletedUntil int64
	// ReceivedUntil is the receipt up to which the tombstone covers events, in ms.
	ReceivedUntil int64
	// Marks is the number of marks of the user that the row had from which the profile
	// was computed. After another mark the profile is no longer valid.
	Marks int64

	Anchor      int64 // ms: the T of the formula
	LastEventAt int64 // ms: the latest event in the window, scored or not; 0 unless Known
	Known       bool  // an event is in the window

	// Until (ms) is the time from which the profile is no longer valid.
	// While max(now, Anchor) < Until, decay alone brings the profile up to
	// date: no event with a facet that scores has left the window, whether its filters are
	// listed, left out or score nothing, no event later than Anchor has entered it (see
	// Window.Ahead), and the Bounds choose the same filters. It is math.MaxInt64 if the
	// profile never expires.
	Until int64

	HalfLives  []strategy.HalfLife // empty: the scores are plain sums
	Affinities []Affinity          // by first score descending, then facet, then value
	// Total counts the filters that an event in the window scores, listed or not:
	// also those that the Bounds leave out or whose scores have decayed to zero,
	// and those that were not decoded.
	Total int
	// LeftOut has an entry for each facet of which the Bounds leave out a value that
	// scores above 0, sorted by facet. It has no value, and its scores are the highest of
	// the values left out, under each half-life.
	LeftOut []Affinity
}

// filter is the key under which Reference adds up scores.
type filter struct{ facet, value string }

// byRank orders affinities as profiles list them.
func byRank(a, b Affinity) int {
	if c := cmp.Compare(b.Scores[0], a.Scores[0]); c != 0 {
		return c
	}
	return byName(a, b)
}

func byName(a, b Affinity) int {
	if c := strings.Compare(a.Facet, b.Facet); c != 0 {
		return c
	}
	return strings.Compare(a.Value, b.Value)
}

// allZero reports whether all scores are zero, possibly by underflow. A profile
// does not list such an affinity.
func allZero(scores []float64) bool {
	return !slices.ContainsFunc(scores, func(s float64) bool { return s > 0 })
}
