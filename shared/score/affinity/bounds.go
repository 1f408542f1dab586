package affinity

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Bounds limit the values that a profile lists. They are part of the formula:
// anybody can send events of any values for any user. 0 is without limit.
//
// A profile lists the values of a facet that are among its FacetValues best
// under at least one half-life, with a score above 0 there, by score and then by
// value. Of these it lists, in its order, as many as Values and NameBytes allow.
//
// Decay multiplies all scores of a half-life alike, so a profile may be bounded
// before or after it decays. But bounded profiles must not be added or merged: a
// value that both leave out may be one of the best of the sum.
//
// Sums of another order differ in their last bits, so values whose scores are
// within a relative 1e-9 of the last one that fits may be listed or not.
type Bounds struct {
	FacetValues int // of a facet, under each half-life
	Values      int // of the profile
	NameBytes   int // of the facets and values of all affinities
}

// StandardBounds returns the bounds of stored profiles and of answers.
func StandardBounds() Bounds {
	return Bounds{FacetValues: 1_000, Values: 10_000, NameBytes: 1 << 20}
}

// Truncated reports whether the bounds leave out a value that scores above 0.
func (p Profile) Truncated() bool { return len(p.LeftOut) > 0 }

// nameBytes is what an affinity counts towards NameBytes.
func nameBytes(a Affinity) int { return len(a.Facet) + len(a.Value) }

// fit reports whether so many values with names of so many bytes are within the
// bounds, however they are distributed.
func (b Bounds) fit(values, bytes int) bool {
	return (b.FacetValues <= 0 || values <= b.FacetValues) && (b.Values <= 0 || values <= b.Values) &&
		(b.NameBytes <= 0 || bytes <= b.NameBytes)
}

// bound leaves out what exceeds the bounds from a profile whose affinities are
// all there and in order.
func (b Bounds) bound(p *Profile) {
	b.boundFacets(p)
	b.boundWhole(p, nameBytes)
}

// boundFacets chooses the best values of each facet.
func (b Bounds) boundFacets(p *Profile) {
	if b.FacetValues <= 0 || len(p.Affinities) <= b.FacetValues {
		return
	}
	places := map[string][]int32{}
	for i, a := range p.Affinities {
		places[a.Facet] = append(places[a.Facet], int32(i))
	}
	drop := make([]bool, len(p.Affinities))
	for _, at := range places {
		if len(at) <= b.FacetValues {
			continue
		}
		for _, i := range at {
			drop[i] = true
		}
		for k := range p.Affinities[at[0]].Scores {
			for _, i := range b.best(p.Affinities, at, k) {
				drop[i] = false
			}
		}
	}
	kept := make([]Affinity, 0, len(p.Affinities))
	for i, a := range p.Affinities {
		if drop[i] {
			p.leaveOut(a)
		} else {
			kept = append(kept, a)
		}
	}
	p.Affinities = kept
}

// best returns the places of the best values under the half-life with index k.
// at holds the places of a facet's values, more than FacetValues, in the order
// of profiles.
func (b Bounds) best(all []Affinity, at []int32, k int) []int32 {
	best := make([]int32, 0, b.FacetValues)
	if k == 0 { // the order of profiles
		for _, i := range at[:b.FacetValues] {
			if all[i].Scores[0] > 0 {
				best = append(best, i)
			}
		}
		return best
	}
	scores := make([]float64, len(at))
	for j, i := range at {
		scores[j] = all[i].Scores[k]
	}
	slices.Sort(scores)
	floor := scores[len(scores)-b.FacetValues]
	var ties []int32
	for _, i := range at {
		switch score := all[i].Scores[k]; {
		case score > floor:
			best = append(best, i)
		case score == floor && score > 0:
			ties = append(ties, i)
		}
	}
	slices.SortFunc(ties, func(i, j int32) int { return strings.Compare(all[i].Value, all[j].Value) })
	return append(best, ties[:min(len(ties), b.FacetValues-len(best))]...)
}

// boundWhole cuts the list of a profile where its values or names become too
// many.
//
// What it leaves out is not known to follow decay: once a score fades to zero,
// the best of a facet are others, and the list has room for what was cut. So the
// profile is valid only until then.
func (b Bounds) boundWhole(p *Profile, size func(Affinity) int) {
	bytes, end := 0, 0
	for ; end < len(p.Affinities); end++ {
		bytes += size(p.Affinities[end])
		if b.Values > 0 && end == b.Values || b.NameBytes > 0 && bytes > b.NameBytes {
			break
		}
	}
	if end == len(p.Affinities) {
		return
	}
	p.Until = min(p.Until, p.fades(p.Affinities[:end+1]))
	for _, a := range p.Affinities[end:] {
		p.leaveOut(a)
	}
	p.Affinities = p.Affinities[:end:end]
}

// leastExponent is the exponent of 2 of the smallest score with all the digits of a float64.
const leastExponent = -1022

// fades returns the time (ms) at which the first of the scores becomes too small
// for all the digits of a float64. It is later than the anchor.
func (p *Profile) fades(affinities []Affinity) int64 {
	until := int64(math.MaxInt64)
	for k, h := range p.HalfLives {
		least := math.Inf(1)
		for _, a := range affinities {
			if s := a.Scores[k]; s > 0 {
				least = min(least, s)
			}
		}
		if lasts := (math.Log2(least) - leastExponent) * h.Millis(); lasts < float64(math.MaxInt64-max(p.Anchor, 0)) {
			until = min(until, p.Anchor+max(1, int64(lasts)))
		}
	}
	return until
}

// leaveOut notes an affinity that the profile does not list.
func (p *Profile) leaveOut(a Affinity) {
	at, found := slices.BinarySearchFunc(p.LeftOut, a.Facet, func(l Affinity, facet string) int {
		return cmp.Compare(l.Facet, facet)
	})
	if !found {
		p.LeftOut = slices.Insert(p.LeftOut, at, Affinity{Facet: a.Facet, Scores: make([]float64, len(a.Scores))})
	}
	most := p.LeftOut[at].Scores
	for k, s := range a.Scores {
		most[k] = max(most[k], s)
	}
}

// leaveOutAll notes what another choice of the same user has left out.
func (p *Profile) leaveOutAll(leftOut []Affinity) {
	for _, a := range leftOut {
		p.leaveOut(a)
	}
}
