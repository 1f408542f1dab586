package enrich

import (
	"errors"

	"github.com/affinityengine/affinity/shared/bus"
	"github.com/affinityengine/affinity/shared/event"
)

// MaxCost bounds what the filters of the objects of several events cost together,
// in bytes. A batch of a thousand events with five objects of twenty filters each
// costs less. One event costs at most 2.3 MB, because it names at most 20 objects,
// and an object has at most 1,000 filters and 64 KiB of text.
const MaxCost = 8 << 20

// filterCost is what one filter of one object of one event costs, in bytes, besides
// its text: an affinity.Count in memory, and the frame of a filter in a message and
// in a row of the log.
const filterCost = 48

// ErrTooMuch says that the filters of the objects of some events cost more than
// MaxCost. Fewer events at a time can be resolved.
var ErrTooMuch = errors.New("the objects of the events have more filters than one message may carry")

// costOf is what the filters of one object cost for each event that names it.
func costOf(filters []bus.Filter) int {
	cost := filterCost * len(filters)
	for i := range filters {
		cost += len(filters[i][0]) + len(filters[i][1])
	}
	return cost
}

// Cost is what the filters of an event's objects cost, in bytes. It copies
// nothing.
func Cost(e *event.Event, objects bus.Objects) int {
	known, cost := objects[e.Index], 0
	for _, id := range e.ObjectIDs {
		cost += costOf(known[id])
	}
	return cost
}

// Fit returns how many of n events, in their order, cost at most MaxCost together,
// and what they cost. It returns at least 1 if there is an event.
func Fit(n int, event func(i int) *event.Event, objects bus.Objects) (fit, cost int) {
	for i := range n {
		one := Cost(event(i), objects)
		if cost+one > MaxCost && i > 0 {
			return i, cost
		}
		cost += one
	}
	return n, cost
}
