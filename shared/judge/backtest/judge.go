package backtest

import (
	"context"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Plain returns s with the plain ranking: the affinities alone.
func Plain(s strategy.Strategy) strategy.Strategy {
	s.Ranking, s.PersonalizationImpact = strategy.PlainRanking(), strategy.MaxImpact
	return s
}

// scores returns an error if a strategy can score nothing.
func scores(s strategy.Strategy) error {
	events, facets := false, false
	for _, e := range s.EventsScoring {
		events = events || e.Score > 0
	}
	for _, f := range s.FacetsScoring {
		facets = facets || f.Score > 0
	}
	switch {
	case !events:
		return refuse("the strategy scores nothing: no entry of eventsScoring has a score above 0")
	case !facets:
		return refuse("the strategy scores nothing: no entry of facetsScoring has a score above 0")
	}
	return nil
}

// Check returns an error, a *fault.Error, if a valid strategy cannot rank: it
// scores nothing, or its impact and all weights of its ranking are 0.
func Check(s strategy.Strategy) error {
	r := s.RankingOrDefault()
	if s.PersonalizationImpact == 0 && r.Session.Weight == 0 && r.Popularity.Weight == 0 &&
		r.Links() == [crowd.Ranked]int{} && r.Freshness.Weight == 0 {
		return refuse("the strategy ranks nothing: personalizationImpact and all weights of its ranking are 0")
	}
	return scores(s)
}

// Check returns an error, a *fault.Error, if a valid strategy scores nothing in
// the log: none of its events, or no facet of its objects and events.
func (l *Log) Check(s strategy.Strategy) error {
	if !slices.ContainsFunc(l.points(s), func(points float64) bool { return points > 0 }) {
		return refuse("the strategy scores none of the %d events: the log has %s", len(l.events), l.listKinds())
	}
	if !slices.ContainsFunc(l.filters, func(f event.Filter) bool { return s.FacetScore(f.Facet) > 0 }) {
		return refuse("the strategy scores no attribute that the objects of index %q have: they have %s", l.index,
			l.listFacets())
	}
	return nil
}

// Judge ranks the candidates of all cases under a valid strategy. Profile and
// session come from all events of the user before the instant, as of the
// instant; events do not leave the window. Requests bring no relevancy, so the
// impact is whole. Crowd statistics and document frequencies are as of the cut.
//
// The error is that of Check, a *fault.Error if freshness has a weight and no
// object has a date to go by, or that of ctx.
func (c *Cases) Judge(ctx context.Context, s strategy.Strategy) (*Result, error) {
	if err := Check(s); err != nil {
		return nil, err
	}
	if f := s.RankingOrDefault().Freshness; f.Weight > 0 && c.log.dates[f.Attribute] == nil {
		return nil, refuse("ranking.freshness has the weight %d, but no object of index %q has a date in the "+
			"attribute %q", f.Weight, c.log.index, f.Attribute)
	}
	compiled := c.compile(s)
	return c.judge(ctx, func() ranker { return compiled.ranker() })
}

// compiled is a strategy in the numbers of a log.
type compiled struct {
	cases    *Cases
	ranking  strategy.FullRanking
	weights  [crowd.Ranked]int // of links
	points   []float64         // by kind
	halfLife float64           // the first, in ms; 0: events do not age

	terms  []term
	termOf []int32   // by filter of the log: its term, noFacet or noValue
	match  lists     // by object: the terms of its filters
	roots  []float64 // by object: the square root of the number of its filters in facets that score

	popularity []float64 // by object: the weighted feature
	published  *dates    // nil: weight 0
}

// Filters that are no term: of a facet that does not score, and with a value that does not.
const (
	noFacet = -1 - iota
	noValue
)

// term is a filter that scores, after aliases.
type term struct {
	weight   float64 // of its facet
	contrast float64
}

// compile prepares a strategy.
func (c *Cases) compile(s strategy.Strategy) *compiled {
	p := &compiled{cases: c, ranking: s.RankingOrDefault(), points: c.log.points(s)}
	p.weights = p.ranking.Links()
	if len(s.HalfLives) > 0 {
		p.halfLife = s.HalfLives[0].Millis()
	}
	p.addTerms(s)
	p.roots = make([]float64, len(c.log.objects))
	var terms []int32
	for o := range c.log.objects {
		terms = terms[:0]
		filters := 0
		for _, f := range c.log.carried.at(int32(o)) {
			t := p.termOf[f]
			if t >= 0 {
				terms = append(terms, t)
			}
			if t != noFacet {
				filters++
			}
		}
		p.match.add(terms...)
		p.roots[o] = math.Sqrt(float64(filters))
	}
	p.popularity = make([]float64, len(c.log.objects))
	if w := p.ranking.Popularity.Weight; w > 0 {
		p.popularity = c.crowd.decayed(c.cut, p.ranking.Popularity.HalfLife.Millis())
		for o := range p.popularity {
			p.popularity[o] *= percent(w)
		}
	}
	if p.ranking.Freshness.Weight > 0 {
		p.published = c.log.dates[p.ranking.Freshness.Attribute]
	}
	return p
}

// addTerms numbers the filters that score.
func (p *compiled) addTerms(s strategy.Strategy) {
	l := p.cases.log
	weights := map[string]float64{}
	for _, f := range s.FacetsScoring {
		weights[f.FacetName] = float64(f.Score)
	}
	p.termOf = make([]int32, len(l.filters))
	numbers := map[event.Filter]int32{}
	var frequencies []int
	for i, f := range l.filters {
		weight := weights[f.Facet]
		if weight == 0 {
			p.termOf[i] = noFacet
			continue
		}
		if f.Value = s.Alias(f.Facet, f.Value); s.Ignores(f.Value) || !s.Allows(f.Facet, f.Value) {
			p.termOf[i] = noValue
			continue
		}
		t, ok := numbers[f]
		if !ok {
			t = int32(len(p.terms))
			numbers[f] = t
			p.terms = append(p.terms, term{weight: weight, contrast: 1})
			frequencies = append(frequencies, 0)
		}
		p.termOf[i] = t
		frequencies[t] += int(p.cases.crowd.frequency[i])
	}
	if p.ranking.Contrast == strategy.ContrastIDF {
		for t := range p.terms {
			p.terms[t].contrast = ranking.IDF(p.cases.crowd.objects, frequencies[t])
		}
	}
}

func percent(n int) float64 { return float64(n) / 100 }
