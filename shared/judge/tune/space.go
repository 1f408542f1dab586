package tune

import (
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/suggest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// maxFacets bounds the facets that a search may add to those of the given
// strategy.
const maxFacets = 12

// space is the set of strategies that a search can judge. A point of it has a
// level in each dimension.
type space struct {
	given  strategy.Strategy
	facets []string // of the given strategy, then others of the catalog
	dims   []dimension
	starts []point // where a search begins: the given strategy first
}

// point is a level by dimension.
type point []int

// with returns a copy of p with another level in one dimension.
func (p point) with(dim, level int) point {
	q := slices.Clone(p)
	q[dim] = level
	return q
}

// draft is a strategy as numbers that a search changes.
type draft struct {
	events, facets []int             // scores, by place in the given strategy and in space.facets
	halfLife       strategy.HalfLife // the first; zero: events do not age
	ranking        strategy.FullRanking
}

func (d draft) clone() draft {
	d.events, d.facets = slices.Clone(d.events), slices.Clone(d.facets)
	return d
}

// newSpace returns the space around a strategy. It has every event that the
// strategy scores, and no others: what a strategy leaves out, such as refunds, it
// may leave out on purpose. Facets of the catalog may be added.
func newSpace(l *backtest.Log, given strategy.Strategy) *space {
	s := &space{given: given, facets: facetsOf(l, given)}
	base := s.draft(given)
	drafts := []draft{base}
	for _, change := range startingRankings(base.ranking, l.DateAttributes()) {
		d := base.clone()
		d.ranking = change
		drafts = append(drafts, d)
	}
	s.addScores(drafts)
	s.addRanking(l.DateAttributes(), drafts)
	add(s, halfLives, drafts, byLength, func(d *draft) *strategy.HalfLife { return &d.halfLife })
	for _, d := range drafts {
		s.starts = append(s.starts, s.point(d))
	}
	return s
}

// startingRankings returns the default ranking, the suggested one, the plain one, and the plain one
// with each single feature and with contrast. Freshness needs an attribute that
// holds dates.
func startingRankings(given strategy.FullRanking, dates []string) []strategy.FullRanking {
	attribute := given.Freshness.Attribute
	if len(dates) > 0 && !slices.Contains(dates, attribute) {
		attribute = dates[0]
	}
	defaults := strategy.DefaultRanking()
	plain := strategy.Strategy{Ranking: strategy.PlainRanking()}.RankingOrDefault()
	suggested := strategy.Strategy{Ranking: strategy.SuggestedRanking()}.RankingOrDefault()
	for _, r := range []*strategy.FullRanking{&defaults, &suggested, &plain} {
		r.Freshness.Attribute = attribute
	}
	all := []strategy.FullRanking{defaults, suggested, plain}
	for _, change := range []func(*strategy.FullRanking){
		func(r *strategy.FullRanking) { r.Contrast = strategy.ContrastIDF },
		func(r *strategy.FullRanking) { r.Session.Weight = strategy.MaxWeight },
		func(r *strategy.FullRanking) { r.Popularity.Weight = strategy.MaxWeight },
		func(r *strategy.FullRanking) { r.Pairs.Weight = strategy.MaxWeight },
		func(r *strategy.FullRanking) { r.Sequence.Weight = strategy.MaxCrowdWeight },
		func(r *strategy.FullRanking) { r.Neighbours.Weight = strategy.MaxCrowdWeight },
		func(r *strategy.FullRanking) { r.Freshness.Weight = strategy.MaxWeight },
	} {
		r := plain
		change(&r)
		if r.Freshness.Weight == 0 || len(dates) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// facetsOf returns the facets of a strategy, then those of the catalog that can be a taste, the most
// widely shared first.
func facetsOf(l *backtest.Log, given strategy.Strategy) []string {
	var names []string
	for _, f := range given.FacetsScoring {
		names = append(names, f.FacetName)
	}
	var objects suggest.Objects
	l.EachObject(objects.Add)
	added := 0
	for _, name := range objects.Usable() {
		if added == maxFacets || len(names) == strategy.MaxEntries {
			break
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
			added++
		}
	}
	return names
}

// draft returns the numbers of a strategy.
func (s *space) draft(g strategy.Strategy) draft {
	d := draft{ranking: g.RankingOrDefault(), facets: make([]int, len(s.facets))}
	for _, e := range g.EventsScoring {
		d.events = append(d.events, e.Score)
	}
	for i, name := range s.facets {
		d.facets[i] = g.FacetScore(name)
	}
	if len(g.HalfLives) > 0 {
		d.halfLife = g.HalfLives[0]
	}
	return d
}

// strategy returns the strategy at a point. Half-lives but the first, aliases and
// the impact are those of the given strategy.
func (s *space) strategy(p point) strategy.Strategy {
	d := s.at(p)
	out := s.given
	out.EventsScoring = slices.Clone(s.given.EventsScoring)
	for i := range out.EventsScoring {
		out.EventsScoring[i].Score = d.events[i]
	}
	out.FacetsScoring = nil
	for i, name := range s.facets {
		if i < len(s.given.FacetsScoring) || d.facets[i] > 0 {
			out.FacetsScoring = append(out.FacetsScoring, strategy.FacetScore{FacetName: name, Score: d.facets[i]})
		}
	}
	out.HalfLives = s.halfLives(d.halfLife)
	out.Ranking = d.ranking.Ranking()
	return out
}

// halfLives returns the half-lives of a strategy with the given first one.
func (s *space) halfLives(first strategy.HalfLife) []strategy.HalfLife {
	if first.IsZero() {
		return nil // no event ages: other half-lives would become the first
	}
	list := []strategy.HalfLife{first}
	for i, h := range s.given.HalfLives {
		if i > 0 && !h.SameAs(first) {
			list = append(list, h)
		}
	}
	return list
}

// at returns the numbers at a point.
func (s *space) at(p point) draft {
	d := s.draft(s.given)
	for i, dim := range s.dims {
		dim.set(&d, p[i])
	}
	return d
}

// point returns the point of a draft whose values all dimensions have.
func (s *space) point(d draft) point {
	p := make(point, len(s.dims))
	for i, dim := range s.dims {
		p[i] = dim.level(&d)
	}
	return p
}

// key returns the same text for points that order all objects equally: what has
// no weight does not matter, and neither does the scale of scores. It returns ""
// for a strategy that cannot rank: it scores nothing, or the given strategy has the
// impact 0 and nothing has a weight.
func (s *space) key(p point) string {
	if backtest.Check(s.strategy(p)) != nil {
		return ""
	}
	d := s.at(p)
	var b strings.Builder
	for _, list := range [][]int{d.events, d.facets} {
		top := slices.Max(list)
		for _, n := range list {
			fmt.Fprintf(&b, "%.9f ", float64(n)/float64(top))
		}
	}
	r := &d.ranking
	fmt.Fprintf(&b, "%v %s %v", d.halfLife.Millis(), r.Contrast, r.Links())
	for _, f := range []struct {
		weight   int
		halfLife strategy.HalfLife
		of       string
	}{
		{r.Session.Weight, r.Session.HalfLife, ""}, {r.Popularity.Weight, r.Popularity.HalfLife, ""},
		{r.Freshness.Weight, r.Freshness.HalfLife, r.Freshness.Attribute},
	} {
		fmt.Fprintf(&b, " %d", f.weight)
		if f.weight > 0 {
			n, _ := f.halfLife.Events()
			fmt.Fprintf(&b, " %v %v %s", f.halfLife.Millis(), n, f.of)
		}
	}
	return b.String()
}
