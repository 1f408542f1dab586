package affinity

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Reference is Reference of the standard bounds.
func Reference(events []Event, s strategy.Strategy, w Window) Profile {
	return StandardBounds().Reference(events, s, w)
}

// Reference computes a profile from all events of a user, in any order. Tests
// and audits compare every other computation with it, so it follows the formula
// line by line and is not optimized.
func (b Bounds) Reference(events []Event, s strategy.Strategy, w Window) Profile {
	halfLives := []float64{math.Inf(1)} // events do not age: the plain sum
	if len(s.HalfLives) > 0 {
		halfLives = nil
	}
	for _, h := range s.HalfLives {
		halfLives = append(halfLives, h.Millis())
	}

	p := Profile{
		RetentionDays: w.RetentionDays, Anchor: w.Now, DeletedUntil: w.DeletedUntil,
		ReceivedUntil: max(w.ReceivedUntil, w.DeletedUntil),
		Marks:         w.Marks, Until: math.MaxInt64, HalfLives: s.HalfLives,
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
			p.Until = min(p.Until, w.leaves(e.Time))
			f := filter{c.Facet, s.Alias(c.Facet, c.Value)}
			if s.Ignores(f.value) || !s.Allows(f.facet, f.value) {
				continue
			}
			if scores[f] == nil {
				scores[f] = make([]float64, len(halfLives))
			}
			for i, h := range halfLives {
				scores[f][i] += weight * math.Exp2(-age(w.Now, e.Time)/h)
			}
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
	p.Total = len(scores)
	b.reference(&p)
	return p
}

// reference chooses, from all values that score, those that the profile lists.
func (b Bounds) reference(p *Profile) {
	chosen := map[filter]bool{}
	for i := range max(1, len(p.HalfLives)) {
		best := slices.Clone(p.Affinities)
		slices.SortFunc(best, func(x, y Affinity) int {
			return cmp.Or(cmp.Compare(y.Scores[i], x.Scores[i]), strings.Compare(x.Value, y.Value))
		})
		listed := map[string]int{}
		for _, a := range best {
			if a.Scores[i] > 0 && (b.FacetValues <= 0 || listed[a.Facet] < b.FacetValues) {
				chosen[filter{a.Facet, a.Value}] = true
				listed[a.Facet]++
			}
		}
	}
	all, values, bytes, full := p.Affinities, 0, 0, false
	p.Affinities = nil
	for _, a := range all {
		if !chosen[filter{a.Facet, a.Value}] {
			p.leaveOut(a)
			continue
		}
		values, bytes = values+1, bytes+len(a.Facet)+len(a.Value)
		if !full && (b.Values > 0 && values > b.Values || b.NameBytes > 0 && bytes > b.NameBytes) {
			full = true
			p.Until = min(p.Until, p.fades(append(slices.Clone(p.Affinities), a)))
		}
		if full {
			p.leaveOut(a)
		} else {
			p.Affinities = append(p.Affinities, a)
		}
	}
}
