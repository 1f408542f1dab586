package affinity

import (
	"math"
	"slices"
	"sort"
)

const (
	// nearTie is the relative difference up to which two scores may change places
	// when their terms are added in another order.
	nearTie = 1e-9
	// vanishing is the score below which a float64 loses digits.
	vanishing = 1e-290
)

// Leeway holds the list of a profile to the bounds without knowing in which order
// its scores were added up. It also covers events of which nobody knows yet
// whether the profile counts them.
type Leeway struct {
	b         Bounds
	low, high map[filter][]float64
	lows      map[place][]float64 // sorted
	highs     map[place][]float64
	// Values that are not listed because the list is full score at most ceiling, and
	// values below floor may not be listed, each under the first half-life.
	ceiling, floor float64
	exceeds        bool
}

// place is a facet under the half-life with an index.
type place struct {
	facet    string
	halfLife int
}

// Leeway judges the list of a profile of the bounds. low and high are profiles
// without bounds, as of the same instant: low counts the events that the profile
// must count, and high those that it may count.
func (b Bounds) Leeway(listed, low, high Profile) *Leeway {
	l := &Leeway{
		b: b, ceiling: math.Inf(-1), floor: math.Inf(-1),
		low: byFilter(low), high: byFilter(high), lows: byPlace(low), highs: byPlace(high),
	}
	bytes, in := 0, byFilter(listed)
	for _, a := range listed.Affinities {
		bytes += nameBytes(a)
	}
	values := len(listed.Affinities)
	l.exceeds = b.Values > 0 && values > b.Values || b.NameBytes > 0 && bytes > b.NameBytes
	for _, a := range high.Affinities {
		f := filter{a.Facet, a.Value}
		if in[f] != nil || !listed.Truncated() {
			continue
		}
		fits := (b.Values <= 0 || values < b.Values) && (b.NameBytes <= 0 || bytes+nameBytes(a) <= b.NameBytes)
		if fits {
			continue // only FacetValues can be the reason
		}
		if l.mayChoose(f) {
			l.ceiling = max(l.ceiling, a.Scores[0])
		}
		if low := l.low[f]; low != nil && l.mustChoose(f) {
			l.floor = max(l.floor, low[0])
		}
	}
	return l
}

// Exceeds reports whether the list has more values or longer names than the bounds
// allow.
func (l *Leeway) Exceeds() bool { return l.exceeds }

// MayList reports whether the profile may list a value that high has.
func (l *Leeway) MayList(facet, value string) bool {
	f := filter{facet, value}
	return l.mayChoose(f) && l.high[f][0] >= l.floor*(1-nearTie)-vanishing
}

// MayMiss reports whether the profile may leave out a value.
func (l *Leeway) MayMiss(facet, value string) bool {
	f := filter{facet, value}
	low := l.low[f]
	return low == nil || low[0] <= l.ceiling*(1+nearTie) || !l.mustChoose(f)
}

// mustChoose reports whether a value is among the best of its facet in any case.
func (l *Leeway) mustChoose(f filter) bool {
	for k, score := range l.low[f] {
		better := l.highs[place{f.facet, k}]
		n := len(better) - sort.SearchFloat64s(better, score*(1-nearTie)) - 1 // without itself
		if score > vanishing && (l.b.FacetValues <= 0 || n < l.b.FacetValues) {
			return true
		}
	}
	return false
}

// mayChoose reports whether a value may be among the best of its facet.
func (l *Leeway) mayChoose(f filter) bool {
	for k, score := range l.high[f] {
		better := l.lows[place{f.facet, k}]
		n := len(better) - sort.SearchFloat64s(better, math.Nextafter(score*(1+nearTie)+vanishing, math.Inf(1)))
		if score > 0 && (l.b.FacetValues <= 0 || n < l.b.FacetValues) {
			return true
		}
	}
	return false
}

func byFilter(p Profile) map[filter][]float64 {
	scores := make(map[filter][]float64, len(p.Affinities))
	for _, a := range p.Affinities {
		scores[filter{a.Facet, a.Value}] = a.Scores
	}
	return scores
}

func byPlace(p Profile) map[place][]float64 {
	scores := map[place][]float64{}
	for _, a := range p.Affinities {
		for k, s := range a.Scores {
			scores[place{a.Facet, k}] = append(scores[place{a.Facet, k}], s)
		}
	}
	for _, s := range scores {
		slices.Sort(s)
	}
	return scores
}
