package segment

import (
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Condition says which users belong to a segment. Exactly one of its fields is set.
type Condition struct {
	Filter *Filter
	And    []Condition // all hold
	Or     []Condition // at least one holds
	Not    *Condition  // it does not hold
}

// Filter holds if the user's score of a filter, under the half-life, is above a number.
type Filter struct {
	event.Filter
	// HalfLife is one of the strategy's, or zero: the first of them, or none if the
	// strategy has none.
	HalfLife strategy.HalfLife
	Above    float64 // 0 or more
}
