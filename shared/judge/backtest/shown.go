package backtest

import (
	"context"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
)

// shownLists are lists that a shop has really shown.
type shownLists struct {
	of map[string]map[int32]float64 // the positions of objects, by placement
	// best are the best positions of objects in any list.
	best map[int32]float64
}

// AddBaseline adds an object at a position, from 1, to the list that was shown
// in a placement: a value of the facet that cases are judged within, or "" for
// the list of all others. Judge and tune then judge these lists as the baseline
// NameBaseline. It reports whether the log knows the object.
func (l *Log) AddBaseline(placement, objectID string, position float64) (known bool) {
	o, known := l.known[objectID]
	if l.shown == nil {
		l.shown = &shownLists{of: map[string]map[int32]float64{}, best: map[int32]float64{}}
	}
	if !known {
		return false
	}
	if l.shown.of[placement] == nil {
		l.shown.of[placement] = map[int32]float64{}
	}
	for _, list := range []map[int32]float64{l.shown.of[placement], l.shown.best} {
		if at, ok := list[o]; !ok || position < at {
			list[o] = position
		}
	}
	return true
}

// Unmatched returns the placements of AddBaseline that are no value of a facet, in
// order.
func (l *Log) Unmatched(facet string) (placements []string) {
	for placement := range l.shown.of {
		n, ok := l.filterOf[event.Filter{Facet: facet, Value: placement}]
		if placement != "" && (!ok || l.frequency[n] == 0) {
			placements = append(placements, placement)
		}
	}
	slices.Sort(placements)
	return placements
}

// shownRanker ranks candidates by the positions at which they were shown, and what
// was not shown after them by popularity.
type shownRanker struct {
	lists   *shownLists
	within  *facetValues
	popular []int32 // by object: its place by popularity
}

// shownList ranks candidates by the lists of Log.AddBaseline.
func (c *Cases) shownList(ctx context.Context) (*Result, error) {
	return c.judge(ctx, func() ranker { return &shownRanker{c.log.shown, c.within, c.crowd.rank} })
}

func (s *shownRanker) rank(in *instant, candidates []int32, scores []float64) {
	lists := s.listsOf(in)
	for _, o := range candidates {
		best := math.Inf(1)
		for _, list := range lists {
			if at, ok := list[o]; ok {
				best = min(best, at)
			}
		}
		scores[o] = -best
	}
}

// listsOf returns the lists of the values that the instant's objects have, else
// the list of all others, else the best positions.
func (s *shownRanker) listsOf(in *instant) (lists []map[int32]float64) {
	if s.within != nil {
		for _, o := range in.objects {
			for _, v := range s.within.of.at(o) {
				if list := s.lists.of[s.within.names[v]]; list != nil {
					lists = append(lists, list)
				}
			}
		}
	}
	if lists != nil {
		return lists
	}
	if list := s.lists.of[""]; list != nil {
		return append(lists, list)
	}
	return append(lists, s.lists.best)
}

func (s *shownRanker) ties() []int32 { return s.popular }
