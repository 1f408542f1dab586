package enrich

import (
	"errors"
	"iter"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/event/bus"
)

// MaxCost bounds, in bytes, what the filters of the objects that several events name
// cost, and what the filters that these events count cost. A batch of a thousand
// events with five objects of twenty filters each costs less. One event names objects
// that cost at most 2.3 MB, and counts at most 160 kB of them.
const MaxCost = 8 << 20

// filterCost is what one filter of one object of one event costs, in bytes, besides
// its text: an affinity.Count in memory, and the frame of a filter in a message and
// in a row of the log.
const filterCost = 48

// ErrTooMuch says that the filters of the objects of some events cost more than
// MaxCost. Fewer events at a time can be resolved.
var ErrTooMuch = errors.New("the objects of the events have more filters than one message may carry")

func textOf(filters []bus.Filter) int {
	text := 0
	for i := range filters {
		text += len(filters[i][0]) + len(filters[i][1])
	}
	return text
}

// costOf is what the filters of one object cost for each event that counts them.
func costOf(filters []bus.Filter) int { return filterCost*len(filters) + textOf(filters) }

// counted yields the filters of each object that an event counts: see event.Bound.
func counted(e *event.Event, objects bus.Objects) iter.Seq[[]bus.Filter] {
	known := objects[e.Index]
	return func(yield func([]bus.Filter) bool) {
		var bound event.Bound
		for _, id := range e.ObjectIDs {
			filters, bytes := known[id], 0
			if len(e.ObjectIDs) > 1 {
				bytes = textOf(filters)
			}
			if bound.Counts(len(filters), bytes) && !yield(filters) {
				return
			}
		}
	}
}

// leftOut counts the objects that an event names and, because of the bounds, does not
// count.
func leftOut(e *event.Event, objects bus.Objects) int {
	if len(e.ObjectIDs) < 2 {
		return 0
	}
	n := len(e.ObjectIDs)
	for range counted(e, objects) {
		n--
	}
	return n
}

// Cost is what the filters that an event counts cost, in bytes. It copies nothing.
func Cost(e *event.Event, objects bus.Objects) int {
	cost := 0
	for filters := range counted(e, objects) {
		cost += costOf(filters)
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
