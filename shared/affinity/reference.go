package affinity

import (
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/strategy"
)

// Reference computes a profile from all events of a user, in any order. Tests
// and audits compare every other computation with it, so it follows the formula
// line by line and is not optimized.
func Reference(events []Event, s strategy.Strategy, w Window) Profile {
	halfLives := []float64{math.Inf(1)} // events do not age: the plain sum
	if len(s.HalfLives) > 0 {
		halfLives = nil
	}
	for _, h := range s.HalfLives {
		halfLives = append(halfLives, h.Millis())
	}

	p := Profile{
		RetentionDays: w.RetentionDays, Anchor: w.Now, DeletedUntil: w.DeletedUntil,
		Until: math.MaxInt64, HalfLives: s.HalfLives,
	}
	scores := map[filter][]float64{}
	for _, e := range events {
		if !w.Contains(e.Time) {
			p.Until = min(p.Until, w.enters(e.Time))
			continue
		}
		if !p.Known || e.Time > p.LastEventAt {
			p.Known, p.LastEventAt = true, e.Time
		}
		for _, c := range e.Counts {
			weight := float64(s.EventScore(e.Type, e.Name)) * float64(s.FacetScore(c.Facet)) * float64(c.N)
			if weight <= 0 {
				continue
			}
			f := filter{c.Facet, s.Alias(c.Facet, c.Value)}
			if scores[f] == nil {
				scores[f] = make([]float64, len(halfLives))
			}
			for i, h := range halfLives {
				scores[f][i] += weight * math.Exp2(-age(w.Now, e.Time)/h)
			}
			p.Until = min(p.Until, w.leaves(e.Time))
		}
	}
	if p.Known {
		p.Until = min(p.Until, w.leaves(p.LastEventAt))
	}
	for f, sums := range scores {
		if !allZero(sums) {
			p.Affinities = append(p.Affinities, Affinity{Facet: f.facet, Value: f.value, Scores: sums})
		}
	}
	slices.SortFunc(p.Affinities, byRank)
	p.Total = len(p.Affinities)
	return p
}
