package segment

import (
	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/event"
)

// Query is a condition compiled for a strategy. It is safe for concurrent use.
type Query struct {
	// Terms are the filters of the condition, in its order. Filters that are given
	// twice are two terms.
	Terms []Term
	// First is the term whose score orders the users: the first that is not negated.
	First int
	// Whole reports that users may belong to the segment without the First term, so
	// that its list is read from the score of Least on.
	Whole bool

	root  node
	where uint32
}

// Term is a filter of a query, with the aliases of the strategy applied.
type Term struct {
	event.Filter
	HalfLife int // index among the scores of a profile
	Decay    Decay
	Above    float64
}

type node struct {
	op       op
	term     int
	children []node
}

type op int

const (
	opTerm op = iota
	opAnd
	opOr
	opNot
)

// Threshold returns the Order below which no score is above the term's number at an
// instant (ms): a reader of a posting list needs what lies at or above it.
func (t Term) Threshold(at int64) Order {
	o := t.Decay.Order(max(t.Above, 2*Least), at)
	return o - edge
}

// Holds reports whether the condition holds for a profile, and returns the score of
// the First term, 0 if it counts as none. The profile is as of the query's instant.
func (q *Query) Holds(p affinity.Profile) (score float64, ok bool) {
	return 0, false
}

// Where identifies the condition and the half-lives that it was compiled for, for
// cursors.
func (q *Query) Where() uint32 { return q.where }
