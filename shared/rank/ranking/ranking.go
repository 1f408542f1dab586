// Package ranking orders objects for one user. A ranking is a pure function of
// the user's profile and session, the objects, the crowd statistics, the
// strategy and the time:
//
//	score = (1 - i) x relevancy + i x (affinity + ws x session)
//	        + wp x popularity + wc x pairs + wq x sequence + wn x neighbours
//	        + wf x freshness + seen + diversity
//
// where i is the impact as a fraction, each w is a weight of the strategy as a
// fraction, and each feature but seen and diversity lies in 0..1. Reference
// computes the formula as it reads and defines every feature; Diversify defines
// diversity. Ranker computes the same scores fast; tests compare the two.
//
// The package does no I/O and knows no store. Profiles and sessions come from
// the user row, filters from the table objects, and crowd statistics from the
// table crowd: the caller reads them and passes plain data.
package ranking

import (
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Query is all that an order depends on besides the strategy.
type Query struct {
	Now int64 // ms: the instant as of which profile, session and crowd are given

	// Affinities are the user's profile as of Now. HalfLife is the index of the
	// scores that rank: 0 for the strategy's first half-life or the plain sum.
	// An affinity without that score counts nothing.
	Affinities []affinity.Affinity
	HalfLife   int

	Session affinity.Session // the user's newest events that score

	// Neighbours are what the crowd did with the objects of the user's session, as
	// History lists them. A list of a feature without weight may be empty.
	Neighbours []Neighbours

	// HighestCount is the highest Count of the index's objects.
	HighestCount float64
	// Frequencies are those of the index; nil: no statistics.
	Frequencies *Frequencies

	Candidates []Candidate

	// Impact replaces the strategy's personalizationImpact, 0 to 100, unless it
	// is nil.
	Impact *int
	Seen   Seen // "" is Keep
	// Diversity makes the items differ from each other; nil: they need not. It is
	// valid.
	Diversity *strategy.Diversity
	Limit     int  // at most so many items; 0 or less: all
	Explain   bool // items list their features
}

// Candidate is an object to rank.
type Candidate struct {
	ObjectID string
	Object   *Object // its filters; nil if the catalog does not hold the object

	// Relevancy is the score that the caller's search engine gave the object, in
	// any unit. It counts only with HasRelevancy.
	Relevancy    float64
	HasRelevancy bool

	Count float64 // the crowd's decayed count of events that name the object

	// Published (ms) is the time of the attribute by which freshness goes. It
	// counts only with Dated.
	Published int64
	Dated     bool

	Seen bool // the user's history names the object
}

// Neighbours are what all users did with other objects, given one of the user's.
type Neighbours struct {
	Past
	Events float64 // undecayed number of events that name ObjectID
	// Pairs count how often users turned to an object at the time of this one or
	// soon after it, and Sequence how few steps after it: see package crowd.
	// Related are those that the same users turn to, with their weights.
	Pairs, Sequence, Related []Pair
	// Bought are those that stand in a basket with this one. No feature goes by them.
	Bought []Pair
}

// Pair is the second object of a pair and how often the pair occurred, or its weight.
type Pair struct {
	ObjectID string
	Count    float64

	hash uint64 // of ObjectID; 0: not known yet
}

// Hashed returns a pair that ranks faster than one without the hash of its objectID.
func Hashed(objectID string, count float64) Pair { return Pair{objectID, count, hashText(objectID)} }

// Frequencies are the document frequencies of an index: how many of its objects
// carry each filter. Filters are as the catalog has them: aliases are not
// applied.
type Frequencies struct {
	Objects int // of the index
	Filters map[event.Filter]int
}

// Seen says what becomes of candidates that the user's history names.
type Seen string

// The values of Seen.
const (
	Keep    Seen = "keep"    // they rank as the others
	Demote  Seen = "demote"  // they lose a quarter of the impact
	Exclude Seen = "exclude" // they are no candidates
)

// The names of features.
const (
	Relevancy   = "relevancy"
	Affinity    = "affinity"
	Session     = "session"
	Popularity  = "popularity"
	Pairs       = "pairs"
	Sequence    = "sequence"
	Related     = "neighbours"
	Freshness   = "freshness"
	seenBefore  = "seen"
	Diversified = "diversity"
)

// Catalog is the Fallback of an order by what the request and the catalog say alone:
// relevancy, freshness, and at last the objectID.
const Catalog = "catalog"

// Result is an order.
type Result struct {
	// Items are by score descending, then objectID, then place in the query; never
	// nil. Diversify says where diversity leaves equal ones.
	Items []Item

	// Fallback is not empty if the query holds nothing of the user: no affinity, no
	// event of a session and nothing of the crowd that scores with it. The order is then the same for all
	// such users. It is Popularity if popularity is a part of their order, and
	// otherwise Catalog.
	Fallback string
}

// Item is a ranked candidate.
type Item struct {
	ObjectID  string
	Candidate int     // its index in the query
	Score     float64 // finite, with 12 significant digits
	// Features add up to Score, but for its rounding. Only those that are not 0 are listed, in the
	// order of the formula, and only if the query asks to explain.
	Features []Feature
}

// Feature is a weighted term of a score.
type Feature struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // with its weight; negative for seen and diversity
	// Parts add up to Value: the filters behind affinity and session, the
	// objects behind pairs, sequence and neighbours, and behind diversity the object before the item that
	// it has most in common with, and the filter by which it exceeds maxPerValue.
	// Other features have none. The largest come first.
	Parts []Part `json:"parts,omitempty"`
}

// Part is what one filter or one object adds to a feature.
type Part struct {
	Name  string  `json:"name"` // facet:value, or an objectID
	Value float64 `json:"value"`
}
