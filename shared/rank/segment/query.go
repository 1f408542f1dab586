package segment

import (
	"math"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Query is a condition compiled for a strategy. It is safe for concurrent use.
type Query struct {
	// Terms are the filters of the condition, in its order. Filters that are given
	// twice are two terms.
	Terms []Term
	// First is the term whose score orders the users: the first that is not negated.
	First int
	// Whole reports that users may belong to the segment without the First term, so
	// that all of its list is read.
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

// node is a condition with the numbers of its terms.
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
// instant (ms). Nobody else in the term's list can matter to it.
func (t Term) Threshold(at int64) Order {
	low, _ := t.between(at)
	return low
}

// between returns the Orders between which only the profile can tell whether a score is
// above the term's number: those in [low, high]. Above high, it is; below low, it is not.
func (t Term) between(at int64) (low, high Order) {
	above := max(t.Above, Least)
	if t.Decay.halfLife == 0 && t.Above < 1<<mantissaBits {
		// Plain sums are whole, so their Orders are exact, and many may equal the number.
		o := Order(math.Float64bits(above) >> dropped)
		return o + 1, o
	}
	o := t.Decay.orderOf(above, at)
	return o - edge, o + edge
}

// Lists returns the Order from which on the list of a term (an index) is needed at an
// instant (ms): NoOrder for the whole list.
func (q *Query) Lists(term int, at int64) Order {
	if q.Whole && term == q.First {
		return NoOrder
	}
	return q.Terms[term].Threshold(at)
}

// Holds reports whether the condition holds for a profile, and returns the score of
// the First term, 0 if it counts as none. The profile is as of the query's instant.
func (q *Query) Holds(p affinity.Profile) (score float64, ok bool) {
	scores := make([]float64, len(q.Terms))
	for _, a := range p.Affinities {
		for i, t := range q.Terms {
			if t.Value == a.Value && t.Facet == a.Facet && t.HalfLife < len(a.Scores) && a.Scores[t.HalfLife] > Least {
				scores[i] = a.Scores[t.HalfLife]
			}
		}
	}
	return scores[q.First], q.root.holds(q.Terms, scores)
}

func (n node) holds(terms []Term, scores []float64) bool {
	switch n.op {
	case opTerm:
		return scores[n.term] > terms[n.term].Above
	case opNot:
		return !n.children[0].holds(terms, scores)
	}
	for _, c := range n.children {
		if c.holds(terms, scores) != (n.op == opAnd) {
			return n.op == opOr
		}
	}
	return n.op == opAnd
}

// Order returns the Order of a score of the First term as of an instant (ms).
func (q *Query) Order(score float64, at int64) Order {
	return q.Terms[q.First].Decay.Order(score, at)
}

// Score returns the score of an Order of the First term as of an instant (ms).
func (q *Query) Score(o Order, at int64) float64 { return q.Terms[q.First].Decay.Score(o, at) }

// Where identifies the condition and the half-lives that it was compiled for, for
// cursors.
func (q *Query) Where() uint32 { return q.where }
