// Package affinity turns a user's events into his profile. A profile is a pure function: each filter (a facet and a
// value) scores
//
//	score(filter, h, T) = sum over the events with T - retention < time <= T that are not deleted
//	                      of eventScore x facetScore x count x 2^-((T - time)/h)
//
// for a half-life of h days; without half-lives nothing ages and the score is the plain sum. Reference is that
// formula written down; Scorer is the same function made fast, to be fed from whatever holds the events; tests hold
// the two together. The package is separate from those who read events and those who keep profiles so that every
// way to a profile ends in one place. It does no I/O: events live in the log, profiles beside the user's ticket, in
// the form that AppendBinary writes.
package affinity

import (
	"cmp"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
)

// Event is what scoring needs to know of an event.
type Event struct {
	Time   int64 // ms since the epoch
	Type   event.Type
	Name   string
	Counts []Count
}

// Count says how many objects of an event carry a filter, as sent: before any alias.
type Count struct {
	Facet, Value string
	N            int // 0 or less adds nothing
}

// Affinity is one filter of a profile with what it scores: one score per half-life of the profile, in its order, or
// one plain sum. Scores are never negative, and at least one of them is above zero.
type Affinity struct {
	Facet, Value string
	Scores       []float64
}

// Profile is what one user likes as of Anchor. Profiles are values: nothing changes one in place, so copies may share
// their lists.
type Profile struct {
	// StrategyVersion is what the profile was computed under. Whoever computes it fills it in: scoring itself knows a
	// strategy and not its version.
	StrategyVersion int64
	RetentionDays   int // of the window it was computed over; 0 = no limit
	// DeletedUntil of that window, ms: with another tombstone it is another profile.
	DeletedUntil int64

	Anchor      int64 // ms: the T of the formula
	LastEventAt int64 // ms: the latest event in the window, scored or not; 0 unless Known
	Known       bool  // there is an event in the window

	// Until, in ms, ends the time in which the profile follows from its own scores: as long as max(now, Anchor) < Until
	// no event that counts has left the window and none that was ahead of Anchor has entered it. From then on it must
	// be computed anew from the events. math.MaxInt64 when that never happens.
	Until int64

	HalfLives  []int      // days; empty: the scores are plain sums
	Affinities []Affinity // by first score descending, then facet, then value
	Total      int        // affinities of the whole profile; more than len(Affinities) if only some were decoded
}

// filter is the key under which scores add up.
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

// nothing reports whether all scores are zero, be it by underflow: such an affinity is not listed.
func nothing(scores []float64) bool {
	return !slices.ContainsFunc(scores, func(s float64) bool { return s > 0 })
}
