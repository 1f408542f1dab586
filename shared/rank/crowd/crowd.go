// Package crowd counts what all users of an app do with the objects of an
// index: how often events name an object, which objects follow each other, and
// how many objects carry a filter. Rankings and backtests use these crowd
// statistics.
//
// Statistics are a pure function of events as of an instant: of those events
// that the strategy scores and that name an object of the catalog, in the
// window. The events of a user come in the order of the log, by time and then
// event ID. An event names each of its objects once.
//
//	event        counts for an object unless the user has MaxEvents earlier
//	             events of the same day that name it. What follows ignores an
//	             object of an event that does not count for it.
//	count        of an object: the sum over its events of 2^-((T - time)/halfLife)
//	recent count of an object: the same with the half-life Recently. Trend compares the two.
//	pair (A, B)  occurs once for each event e that names A, if an event names B
//	             at the time of e or at most within later, and A is not B. within
//	             one instant every event follows every other and itself, whatever
//	             their IDs.
//	caps         Of e and A only the first maxSuccessors different B count, by
//	             the time and ID of B's first event and its place in that event.
//	             Of a user and a day only the first MaxPairs pairs count: by e,
//	             then the place of A in e, then B. The day of a pair is that of e.
//
//	step          of a user: the first maxStep objects of the events of one instant.
//	sequence      of an object A of a step and another B: counts 1 if B is in the same step or the
//	              next, and 1/d if it is d steps later, up to reach.
//	set           of a user: the objects that they turned to, maxSet at a time: the first maxSet
//	              different ones, then those after the event that completes them, and so on.
//	              Each object of a set of n counts 1/n.
//	together      of two objects: the sum of what the sets that hold both count. The weight of the
//	              two is that sum, divided by the square root of the product of the same sums of
//	              each alone, with damped added to each: the cosine of the two, in which a user with
//	              a few objects says more than one with many, and an object of few users little.
//	basket        of a user: the first maxStep objects of their conversions of one instant.
//	bought        of two objects: how many baskets hold both.
//	caps          Of a user and a day only the first maxBaskets baskets count.
//	              Of a user and a day only the first maxMoves sequences count: by the event that
//	              names B, the place of B in it, the steps from A, then the place of A.
//
// Days are days of UTC. Each index has statistics of its own, and the caps hold
// for each index. Reference computes the definition as it reads; Counter and
// Tally compute the same numbers fast and in bounded memory.
//
// The package does no I/O. Package store keeps statistics in the table crowd,
// and package job/crowd builds them.
package crowd

import (
	"math"
	"time"

	"github.com/affinityengine/affinity/shared/event"
)

// The bounds of the definition.
const (
	MaxEvents     = 50               // events of one user that count for an object, a day
	maxSuccessors = 20               // different second objects of an event and a first object
	MaxPairs      = 200              // pairs of one user, a day
	within        = 30 * time.Minute // from the first event of a pair to the second, at most
	Best          = 50               // pairs that statistics list of an object
	Recently      = day              // ms: the half-life of recent counts
	MaxRising     = 1_000            // objects that statistics list as rising
)

const day = 24 * 60 * 60 * 1000 // ms

// Index holds the statistics of all objects of an index.
type Index struct {
	AsOf     int64   // ms: the T of the definition
	HalfLife float64 // of Counts, in ms; math.Inf(1): events do not age
	// Counts are the decayed counts. An object without an entry has count 0.
	Counts  map[string]float64
	Highest float64 // of Counts
	// Risen are objects whose counts rise: Rising lists the first of them.
	Risen []Scored
	// Objects is the number of objects in the catalog; Frequencies says how many
	// of them carry each filter: the document frequency. Filters are as the
	// catalog has them, without aliases.
	Objects     int
	Frequencies map[event.Filter]int

	Events int64 // events that count for at least one object
	Users  int64 // users with such an event
	// Sampled reports that the statistics come from a sample of the users. Counts
	// and pairs are those of the sample.
	Sampled bool
}

// Object holds what statistics say of one object and others.
type Object struct {
	Events int64 // that count for the object, undecayed
	// Links are the Best links that begin with the object, by count descending, then
	// ObjectID. Those of Follows are pairs. Those of Together count their weight, in
	// 1/whole.
	Links [Kinds][]Pair
	// Bound is 0 if the pairs are exact. Otherwise the count of a listed pair may be
	// too low by at most Bound, and a pair that is missing in the list occurs at
	// most Bound times more than the last listed one. If fewer than Best pairs
	// are listed, it occurs at most Bound times.
	Bound int64
}

// Kind is a kind of links from one object to another.
type Kind int

// The kinds of links.
const (
	Follows  Kind = iota // pairs
	Sequence             // in 1/2520
	Together
	Ranked = iota         // kinds that are features of rankings
	Bought = Kind(Ranked) // baskets
	Kinds  = Ranked + 1
)

// whole is the weight of two objects that all users turn to together.
const whole = 1 << 16

// Weight returns the weight of two objects by what their sets count together and alone.
func Weight(together, first, second int64) int64 {
	if together <= 0 || first <= 0 || second <= 0 {
		return 0
	}
	return int64(math.Round(whole * float64(together) / math.Sqrt(float64(first+damped)*float64(second+damped))))
}

// Exact reports whether the pairs and their counts are exact.
func (o Object) Exact() bool { return o.Bound == 0 }

// Pair is the second object of a link.
type Pair struct {
	ObjectID string
	Count    int64 // how often the link occurs
}

func contains(filters []event.Filter, f event.Filter) bool {
	for _, g := range filters {
		if f == g {
			return true
		}
	}
	return false
}
