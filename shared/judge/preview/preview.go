// Package preview compares profiles under the active strategy and under a
// candidate. It compares what a ranker sees of a profile: the share of each value in
// the sum of the user's scores, and the order of the values. So a strategy that only
// counts in another unit changes nothing. It reports how many profiles would change,
// which values would rise and fall, the users whose profiles would change most, and for
// how many users the same objects would come in another order.
//
// It is pure and keeps nothing: the caller chooses the users and the objects, and
// computes the profiles under both strategies, as of one instant.
package preview

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/affinity"
)

// The lengths of a report's lists.
const (
	moversPerFacet = 5
	examples       = 5
	exampleLength  = 10 // affinities of an example's profile
)

// tolerance is the relative difference up to which two scores are the same.
const tolerance = 1e-9

// Preview compares profiles under two strategies, user by user. It compares the
// scores that rank: those of a strategy's first half-life, or its plain sums.
type Preview struct {
	sampled, known, changed int
	orders                  Orders
	sumBefore, sumAfter     float64   // of all scores of the known users
	correlations            []float64 // one for each known user
	values                  map[filter]*shift
	examples                []Example // the most changed so far, the lowest correlation first
}

// filter is a value of a facet.
type filter struct{ facet, value string }

// Orders counts known users whose order of values, or of objects, changes.
type Orders struct {
	Changed  int // at any place
	TopFive  int // other ones are among the first five, or these have another order
	TopTen   int // the same of the first ten
	TopOne   int // another one is the first
	Compared int // users whose orders were compared
}

// add counts the change from one order to another.
func (o *Orders) add(before, after []int) {
	o.Compared++
	if !slices.Equal(before, after) {
		o.Changed++
	}
	if !slices.Equal(first(before, 5), first(after, 5)) {
		o.TopFive++
	}
	if !slices.Equal(first(before, 10), first(after, 10)) {
		o.TopTen++
	}
	if !slices.Equal(first(before, 1), first(after, 1)) {
		o.TopOne++
	}
}

// first returns the first n places of an order, or all.
func first(order []int, n int) []int { return order[:min(n, len(order))] }

// shift sums up the changes of a value's scores.
type shift struct {
	before, after           float64
	shareBefore, shareAfter float64
	users                   int // whose share of the value changes
}

// New returns a preview without users.
func New() *Preview { return &Preview{values: map[filter]*shift{}} }

// MaxValues bounds the values of all users that a preview compares. A preview of more
// would not fit into memory: the caller chooses fewer users.
const MaxValues = 500_000

// Values returns how many different values the profiles so far have.
func (p *Preview) Values() int { return len(p.values) }

// Add compares a user's complete profiles, both as of one instant. A user who
// is not known counts as sampled only: they have no profile under any strategy.
func (p *Preview) Add(user string, before, after affinity.Profile) {
	p.sampled++
	if !after.Known {
		return
	}
	p.known++
	pairs := union(before.Affinities, after.Affinities)
	tau := correlation(pairs, (len(before.Affinities) == 0) == (len(after.Affinities) == 0))
	p.correlations = append(p.correlations, tau)
	p.orders.add(orderOf(pairs, func(s pair) float64 { return s.before }),
		orderOf(pairs, func(s pair) float64 { return s.after }))
	allBefore, allAfter := sum(before.Affinities), sum(after.Affinities)
	p.sumBefore, p.sumAfter = p.sumBefore+allBefore, p.sumAfter+allAfter
	changed := false
	for _, s := range pairs {
		if s.before == 0 && leavesOut(before, s.facet) || s.after == 0 && leavesOut(after, s.facet) {
			continue // nobody knows its score: see affinity.Bounds
		}
		v := p.values[s.filter]
		if v == nil {
			v = &shift{}
			// The profile's memory must not stay.
			p.values[filter{strings.Clone(s.facet), strings.Clone(s.value)}] = v
		}
		v.before += s.before
		v.after += s.after
		shareBefore, shareAfter := share(s.before, allBefore), share(s.after, allAfter)
		v.shareBefore += shareBefore
		v.shareAfter += shareAfter
		if !near(shareBefore, shareAfter) {
			v.users++
			changed = true
		}
	}
	if changed {
		p.changed++
		p.keep(Example{User: user, RankCorrelation: tau, Before: top(before), After: top(after)})
	}
}

// sum returns the sum of the scores that count: those above 0.
func sum(list []affinity.Affinity) float64 {
	all := 0.0
	for _, a := range list {
		all += max(a.Scores[0], 0)
	}
	return all
}

// share returns which part of the sum of a profile a score is.
func share(score, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return score / all
}

// orderOf returns the places of pairs in the order of their scores, without those that
// score nothing. Pairs of scores that differ by no more than rounding keep their order.
func orderOf(pairs []pair, score func(pair) float64) []int {
	order := make([]int, 0, len(pairs))
	for i, p := range pairs {
		if score(p) != 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(affinity.Rounded(score(pairs[b])), affinity.Rounded(score(pairs[a])))
	})
	return order
}

// leavesOut reports whether a profile does not list all values of a facet that score.
func leavesOut(p affinity.Profile, facet string) bool {
	return slices.ContainsFunc(p.LeftOut, func(a affinity.Affinity) bool { return a.Facet == facet })
}

// keep adds an example if it is among the most changed.
func (p *Preview) keep(e Example) {
	at, _ := slices.BinarySearchFunc(p.examples, e, func(a, b Example) int {
		return cmp.Or(cmp.Compare(a.RankCorrelation, b.RankCorrelation), cmp.Compare(a.User, b.User))
	})
	if at == examples {
		return
	}
	p.examples = slices.Insert(p.examples, at, e)
	p.examples = p.examples[:min(len(p.examples), examples)]
}

// pair is a value's scores under both strategies, 0 where it is not listed.
type pair struct {
	filter
	before, after float64
}

// union returns the values of both lists, in no particular order.
func union(before, after []affinity.Affinity) []pair {
	pairs := make([]pair, 0, max(len(before), len(after)))
	at := make(map[filter]int, len(before))
	for _, a := range before {
		f := filter{a.Facet, a.Value}
		at[f] = len(pairs)
		pairs = append(pairs, pair{filter: f, before: a.Scores[0]})
	}
	for _, a := range after {
		f := filter{a.Facet, a.Value}
		if i, both := at[f]; both {
			pairs[i].after = a.Scores[0]
		} else {
			pairs = append(pairs, pair{filter: f, after: a.Scores[0]})
		}
	}
	return pairs
}

func near(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(a, b) }

// top returns a copy of the first affinities of a profile.
func top(p affinity.Profile) []affinity.Affinity {
	return slices.Clone(p.Affinities[:min(len(p.Affinities), exampleLength)])
}
