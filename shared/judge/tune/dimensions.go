package tune

import (
	"cmp"
	"slices"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// The values that a search tries, beside those of the given strategy and of the
// default ranking. Steps are ratios rather than differences: a facet that weighs
// 3 instead of 1 changes as much as one that weighs 90 instead of 30.
var (
	scores    = []int{0, 1, 3, 10, 30, 100}
	weights   = []int{0, 5, 10, 20, 35, 60, 100}
	crowds    = []int{0, 20, 50, 100, 200, 300, 500} // weights of what all users do
	halfLives = append(strategy.InDays(1, 3, 7, 14, 30, 90, 365),
		strategy.HalfLife{}) // the last: events do not age
	sessionHalfLives = []strategy.HalfLife{strategy.Events(0.5), strategy.Events(1), strategy.Events(2),
		strategy.Events(4), strategy.Events(10)}
	crowdHalfLives     = strategy.InDays(1, 3, 7, 14, 30, 90, 365)
	freshnessHalfLives = strategy.InDays(1, 3, 7, 14, 30, 90, 365)
	contrasts          = []strategy.Contrast{strategy.ContrastNone, strategy.ContrastIDF}
)

// dimension is one setting with the values that it can have.
type dimension struct {
	levels int
	set    func(d *draft, level int)
	level  func(d *draft) int // of the value that d has
}

// addRanking adds the dimensions of the ranking.
func (s *space) addRanking(dates []string, drafts []draft) {
	add(s, contrasts, drafts, cmp.Compare[strategy.Contrast],
		func(d *draft) *strategy.Contrast { return &d.ranking.Contrast })
	add(s, crowds, drafts, cmp.Compare[int], func(d *draft) *int { return &d.ranking.Sequence.Weight })
	add(s, crowds, drafts, cmp.Compare[int], func(d *draft) *int { return &d.ranking.Neighbours.Weight })
	add(s, crowds, drafts, cmp.Compare[int], func(d *draft) *int { return &d.ranking.Pairs.Weight })
	add(s, weights, drafts, cmp.Compare[int], func(d *draft) *int { return &d.ranking.Session.Weight })
	add(s, crowds, drafts, cmp.Compare[int], func(d *draft) *int { return &d.ranking.Popularity.Weight })
	add(s, sessionHalfLives, drafts, byLength, func(d *draft) *strategy.HalfLife { return &d.ranking.Session.HalfLife })
	add(s, crowdHalfLives, drafts, byLength, func(d *draft) *strategy.HalfLife { return &d.ranking.Popularity.HalfLife })
	if len(dates) > 0 {
		add(s, weights, drafts, cmp.Compare[int], func(d *draft) *int { return &d.ranking.Freshness.Weight })
		add(s, freshnessHalfLives, drafts, byLength,
			func(d *draft) *strategy.HalfLife { return &d.ranking.Freshness.HalfLife })
		add(s, dates, drafts, cmp.Compare[string], func(d *draft) *string { return &d.ranking.Freshness.Attribute })
	}
}

// addScores adds the scores of facets, and of events if several score.
func (s *space) addScores(drafts []draft) {
	for i := range s.facets {
		add(s, scores, drafts, cmp.Compare[int], func(d *draft) *int { return &d.facets[i] })
	}
	scored := 0
	for _, e := range s.given.EventsScoring {
		if e.Score > 0 {
			scored++
		}
	}
	for i, e := range s.given.EventsScoring {
		if scored > 1 && e.Score > 0 {
			add(s, scores, drafts, cmp.Compare[int], func(d *draft) *int { return &d.events[i] })
		}
	}
}

// add adds a dimension with the values of the drafts and those of others that are
// not the same, in order.
func add[T comparable](s *space, others []T, drafts []draft, order func(a, b T) int, at func(*draft) *T) {
	var values []T
	for i := range drafts {
		if v := *at(&drafts[i]); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	for _, v := range others {
		if !slices.ContainsFunc(values, func(w T) bool { return order(v, w) == 0 }) {
			values = append(values, v)
		}
	}
	slices.SortStableFunc(values, order)
	s.dims = append(s.dims, dimension{
		levels: len(values),
		set:    func(d *draft, level int) { *at(d) = values[level] },
		level:  func(d *draft) int { return slices.Index(values, *at(d)) },
	})
}

// byLength orders half-lives: those in events, those in time, and none.
func byLength(a, b strategy.HalfLife) int {
	class := func(h strategy.HalfLife) int {
		switch _, ok := h.Events(); {
		case ok:
			return 0
		case h.IsZero():
			return 2
		}
		return 1
	}
	ea, _ := a.Events()
	eb, _ := b.Events()
	return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(ea, eb), cmp.Compare(a.Millis(), b.Millis()))
}
