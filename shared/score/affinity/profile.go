package affinity

import (
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// At is At of the standard bounds.
func (p Profile) At(now int64) Profile { return StandardBounds().At(p, now) }

// At returns the profile decayed to max(now, Anchor), in ms. Plain sums do not
// change. At drops affinities that have decayed to zero under every half-life, and
// those that the bounds chose for a score that has. The caller checks with Until
// that the profile is still valid at that time.
func (b Bounds) At(p Profile, now int64) Profile {
	if now <= p.Anchor {
		return p
	}
	ms := age(now, p.Anchor)
	p.Anchor = now
	if len(p.HalfLives) == 0 {
		return p
	}
	factors := make([]float64, len(p.HalfLives))
	for i, h := range p.HalfLives {
		factors[i] = math.Exp2(-ms / h.Millis())
	}
	p.Affinities = decay(p.Affinities, factors)
	if len(p.LeftOut) > 0 { // decay gives them memory of their own
		p.LeftOut = decay(p.LeftOut, factors)
		slices.SortFunc(p.LeftOut, byName)
	}
	if len(p.HalfLives) > 1 {
		b.boundFacets(&p)
	}
	return p
}

// decay multiplies each score by the factor of its half-life. The order stays
// the same, except where rounding makes two scores equal or zero: then names
// decide.
func decay(affinities []Affinity, factors []float64) []Affinity {
	k := len(factors)
	decayed := make([]Affinity, 0, len(affinities))
	memory := make([]float64, 0, len(affinities)*k)
	sorted := true
	for _, a := range affinities {
		for i, score := range a.Scores {
			memory = append(memory, score*factors[i])
		}
		end := len(memory)
		a.Scores = memory[end-k : end : end]
		if allZero(a.Scores) {
			continue
		}
		if n := len(decayed); n > 0 && a.Scores[0] == decayed[n-1].Scores[0] && byName(a, decayed[n-1]) < 0 {
			sorted = false
		}
		decayed = append(decayed, a)
	}
	if !sorted {
		slices.SortFunc(decayed, byRank)
	}
	return decayed
}

// Outline returns the profile without affinities.
func (p Profile) Outline() Profile {
	p.Affinities, p.Total, p.LeftOut = nil, 0, nil
	return p
}

// Scaled returns facet -> value -> 1..20, the form of Algolia's profiles.
// Clients of that form apply the facet's weight themselves, so Scaled divides
// it out and scales the rest so that the highest score of the profile is 20. It
// leaves out facets that s does not score, and values that have decayed to zero
// under the first half-life. p must hold all its affinities, and s must be
// its strategy. The map is never nil.
func (p Profile) Scaled(s strategy.Strategy) map[string]map[string]int {
	weights := make(map[string]float64, len(s.FacetsScoring))
	for _, f := range s.FacetsScoring {
		weights[f.FacetName] = float64(f.Score)
	}
	highest := 0.0
	for _, a := range p.Affinities {
		if w := weights[a.Facet]; w > 0 {
			highest = max(highest, a.Scores[0]/w)
		}
	}
	scaled := map[string]map[string]int{}
	for _, a := range p.Affinities {
		w := weights[a.Facet]
		if w <= 0 || a.Scores[0]/w == 0 {
			continue
		}
		if scaled[a.Facet] == nil {
			scaled[a.Facet] = map[string]int{}
		}
		scaled[a.Facet][a.Value] = min(max(int(math.Round(20*(a.Scores[0]/w/highest))), 1), 20)
	}
	return scaled
}
