package preview

import (
	"cmp"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// Report is the result of a preview. Changed and Unchanged count known users
// and add up to Known.
type Report struct {
	Sampled, Known, Changed, Unchanged int
	Values                             Orders // of the values of profiles
	// Scale is the sum of all scores of the known users under the candidate, as a multiple
	// of the sum under the active strategy; nil if that is 0. A tiny one says that the
	// events are too old for the candidate's half-life.
	Scale *float64
	// Correlation is nil if no user is known.
	Correlation *Correlation
	Facets      []Facet   // facets with changed values, the largest change first
	Examples    []Example // users whose profiles change, the largest change first
}

// Correlation summarizes the rank correlations of the known users, changed or
// not.
type Correlation struct {
	Mean, Min float64
	P10       float64 // a tenth of the users, rounded up, has this or less
}

// Facet lists the values of a facet whose mean scores change most.
type Facet struct {
	Facet  string
	Movers []Mover
}

// Mover is a value whose mean share over the known users changes.
type Mover struct {
	Value                   string
	ShareBefore, ShareAfter float64 // means, 0 to 1; a user without the value has 0
	Before, After           float64 // mean scores
	Users                   int     // users whose share of the value changes
}

// Example is a user whose profile would change.
type Example struct {
	User            string
	RankCorrelation float64
	Before, After   []affinity.Affinity // the first affinities of each
}

// Report returns the result for the users so far.
func (p *Preview) Report() Report {
	return Report{
		Values: p.orders, Scale: p.scale(),
		Sampled: p.sampled, Known: p.known, Changed: p.changed, Unchanged: p.known - p.changed,
		Correlation: summary(p.correlations), Facets: p.facets(), Examples: slices.Clone(p.examples),
	}
}

func (p *Preview) scale() *float64 {
	if p.sumBefore <= 0 {
		return nil
	}
	scale := p.sumAfter / p.sumBefore
	return &scale
}

func summary(correlations []float64) *Correlation {
	if len(correlations) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(correlations))
	sum := 0.0
	for _, c := range sorted {
		sum += c
	}
	n := len(sorted)
	return &Correlation{Mean: sum / float64(n), Min: sorted[0], P10: sorted[(n+9)/10-1]}
}

func (p *Preview) facets() []Facet {
	byFacet := map[string][]Mover{}
	for f, s := range p.values {
		if s.users > 0 {
			n := float64(p.known)
			byFacet[f.facet] = append(byFacet[f.facet],
				Mover{f.value, s.shareBefore / n, s.shareAfter / n, s.before / n, s.after / n, s.users})
		}
	}
	facets := make([]Facet, 0, len(byFacet))
	for facet, movers := range byFacet {
		slices.SortFunc(movers, func(a, b Mover) int {
			return cmp.Or(cmp.Compare(b.distance(), a.distance()), cmp.Compare(a.Value, b.Value))
		})
		facets = append(facets, Facet{facet, movers[:min(len(movers), moversPerFacet)]})
	}
	slices.SortFunc(facets, func(a, b Facet) int {
		return cmp.Or(cmp.Compare(b.Movers[0].distance(), a.Movers[0].distance()), cmp.Compare(a.Facet, b.Facet))
	})
	return facets
}

// distance is how far the mean share changes, up or down. It is rounded, because a sum
// depends on the order of the users in its last bits.
func (m Mover) distance() float64 { return affinity.Rounded(math.Abs(m.ShareAfter - m.ShareBefore)) }
