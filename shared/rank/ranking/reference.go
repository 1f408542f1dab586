package ranking

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Reference ranks the candidates of a query under a valid strategy. It follows
// the formula line by line and is not optimized; tests compare Ranker with it.
func Reference(s strategy.Strategy, q *Query) Result {
	var candidates []int // indexes of those that are not excluded
	for n := range q.Candidates {
		if !excluded(q, &q.Candidates[n]) {
			candidates = append(candidates, n)
		}
	}
	r, relevancies := s.RankingOrDefault(), relevancyScale(q)
	i := impact(s, q, relevancies)
	profile, session := profileScores(s, q), sessionScores(s, q)
	pairs, sequence, neighbours := crowdSums(s, q)

	// Each of these is divided by its highest value among the candidates.
	affinities, sessions := map[int]float64{}, map[int]float64{}
	pairings, sequences, relations := map[int]float64{}, map[int]float64{}, map[int]float64{}
	for _, n := range candidates {
		c := q.Candidates[n]
		affinities[n] = total(match(s, q, c, profile))
		sessions[n] = total(match(s, q, c, session))
		pairings[n], sequences[n] = total(pairs[c.ObjectID]), total(sequence[c.ObjectID])
		relations[n] = total(neighbours[c.ObjectID])
	}

	items := []Item{}
	for _, n := range candidates {
		c := q.Candidates[n]
		features := []Feature{
			feature(Relevancy, 1-i, relevancies.of(&c), nil),
			feature(Affinity, i, share(affinities[n], highest(affinities)), match(s, q, c, profile)),
			feature(Session, i*percent(r.Session.Weight), share(sessions[n], highest(sessions)), match(s, q, c, session)),
			feature(Popularity, percent(r.Popularity.Weight), PopularityOf(c.Count, q.HighestCount), nil),
			feature(Pairs, percent(r.Pairs.Weight), share(pairings[n], highest(pairings)), pairs[c.ObjectID]),
			feature(Sequence, percent(r.Sequence.Weight), share(sequences[n], highest(sequences)), sequence[c.ObjectID]),
			feature(Related, percent(r.Neighbours.Weight), share(relations[n], highest(relations)), neighbours[c.ObjectID]),
			feature(Freshness, percent(r.Freshness.Weight), freshness(q, c, r.Freshness.HalfLife), nil),
			feature(seenBefore, -i*demotion, demoted(q, c), nil),
		}
		item := Item{ObjectID: c.ObjectID, Candidate: n}
		for _, f := range features {
			item.Score += f.Value
			if q.Explain && f.Value != 0 {
				item.Features = append(item.Features, f)
			}
		}
		item.Score = affinity.Rounded(item.Score)
		items = append(items, item)
	}
	slices.SortFunc(items, compareItems)
	if q.Diversity != nil {
		items = Diversify(q, items)
	}
	result := Result{Items: items[:limited(q, len(items))]}
	if len(profile) == 0 && len(session) == 0 && len(pairs)+len(sequence)+len(neighbours) == 0 {
		result.Fallback = Catalog
		if percent(r.Popularity.Weight) > 0 && PopularityOf(q.HighestCount, q.HighestCount) > 0 {
			result.Fallback = Popularity
		}
	}
	return result
}

// impact returns i. Without any relevancy there is nothing to trade the user's
// part against, so it is whole.
func impact(s strategy.Strategy, q *Query, relevancies scale) float64 {
	switch {
	case !relevancies.given:
		return 1
	case q.Impact != nil:
		return percent(*q.Impact)
	}
	return percent(s.PersonalizationImpact)
}

// profileScores returns the profile's scores of filters in facets that the
// strategy scores.
func profileScores(s strategy.Strategy, q *Query) map[event.Filter]float64 {
	parts := map[event.Filter][]Part{}
	for _, a := range q.Affinities {
		if q.HalfLife < len(a.Scores) && positive(a.Scores[q.HalfLife]) && s.FacetScore(a.Facet) > 0 {
			f := event.Filter{Facet: a.Facet, Value: s.Alias(a.Facet, a.Value)}
			parts[f] = append(parts[f], Part{Value: a.Scores[q.HalfLife]})
		}
	}
	scores := map[event.Filter]float64{}
	for f := range parts {
		scores[f] = total(parts[f])
	}
	return ofHighest(scores)
}

// sessionScores returns the scores of the session's filters.
func sessionScores(s strategy.Strategy, q *Query) map[event.Filter]float64 {
	scores := map[event.Filter]float64{}
	for _, a := range q.Session.Scores(affinity.Compile(s), s.RankingOrDefault().Session.HalfLife, q.Now) {
		scores[event.Filter{Facet: a.Facet, Value: a.Value}] = a.Scores[0]
	}
	return ofHighest(scores)
}

// crowdSums returns for each object B what the crowd did with it and objects A of
// the user, as one part for each A: the sums of count(A, B) / events(A) of pairs and
// of sequence over the objects of the last instant, and of the weights of related
// objects over all A, each halved with every ageOfRelated steps. A feature without
// weight has none.
func crowdSums(s strategy.Strategy, q *Query) (pairs, sequence, neighbours map[string][]Part) {
	r := s.RankingOrDefault()
	sums := func(weight int, of func(a Neighbours) ([]Pair, float64)) map[string][]Part {
		all := map[string][]Part{}
		for _, a := range q.Neighbours {
			list, factor := of(a)
			for _, b := range list {
				if value := b.Count * factor; weight > 0 && positive(b.Count) && positive(factor) && positive(value) {
					all[b.ObjectID] = append(all[b.ObjectID], Part{Name: a.ObjectID, Value: value})
				}
			}
		}
		return all
	}
	ofLast := func(a Neighbours) float64 {
		if !a.Last {
			return 0
		}
		return 1 / a.Events
	}
	return sums(r.Pairs.Weight, func(a Neighbours) ([]Pair, float64) { return a.Pairs, ofLast(a) }),
		sums(r.Sequence.Weight, func(a Neighbours) ([]Pair, float64) { return a.Sequence, ofLast(a) }),
		sums(r.Neighbours.Weight, func(a Neighbours) ([]Pair, float64) {
			return a.Related, math.Exp2(-float64(a.Age) / ageOfRelated)
		})
}

// match returns what each filter of a candidate adds to its affinity or
// session: score x contrast / the root of the number of filters in facets that
// the strategy scores. A filter with an alias counts as the alias's target.
func match(s strategy.Strategy, q *Query, c Candidate, scores map[event.Filter]float64) []Part {
	var matched []Part
	scored := 0
	for _, f := range c.Object.Filters() {
		if s.FacetScore(f.Facet) <= 0 {
			continue
		}
		scored++
		f.Value = s.Alias(f.Facet, f.Value)
		if score := scores[f]; score > 0 {
			matched = append(matched, Part{Name: f.Facet + ":" + f.Value, Value: score * contrast(s, q.Frequencies, f)})
		}
	}
	for n := range matched {
		matched[n].Value /= math.Sqrt(float64(scored))
	}
	return matched
}

// contrast returns the factor of a filter. Its frequency is that of all values
// that count as its value.
func contrast(s strategy.Strategy, known *Frequencies, f event.Filter) float64 {
	if known == nil || s.RankingOrDefault().Contrast != strategy.ContrastIDF {
		return 1
	}
	frequency := known.Filters[f]
	for from, to := range s.Aliases[f.Facet] {
		if to == f.Value {
			frequency += known.Filters[event.Filter{Facet: f.Facet, Value: from}]
		}
	}
	return IDF(known.Objects, frequency)
}

func freshness(q *Query, c Candidate, h strategy.HalfLife) float64 {
	if !c.Dated {
		return 0
	}
	return FreshnessOf(q.Now, c.Published, h.Millis())
}

func demoted(q *Query, c Candidate) float64 {
	if c.Seen && q.Seen == Demote {
		return 1
	}
	return 0
}

// feature returns a weighted feature. Its parts are in proportion to the given
// ones; parts of one name are one part.
func feature(name string, weight, value float64, parts []Part) Feature {
	f := Feature{Name: name, Value: weight * value}
	parts = ofLargest(parts)
	named := map[string][]Part{}
	for _, p := range parts {
		named[p.Name] = append(named[p.Name], p)
	}
	if f.Value == 0 {
		return f
	}
	for name := range named {
		f.Parts = append(f.Parts, Part{Name: name, Value: f.Value * (total(named[name]) / total(parts))})
	}
	slices.SortFunc(f.Parts, compareParts)
	return f
}

// ofHighest divides scores by the highest of them. It changes no order and
// keeps sums finite.
func ofHighest(scores map[event.Filter]float64) map[event.Filter]float64 {
	top := highest(scores)
	for f := range scores {
		scores[f] /= top
	}
	return scores
}

func total(parts []Part) float64 {
	var s sum
	for _, p := range parts {
		s.addBounded(p.Value)
	}
	return s.value()
}

func highest[K comparable](values map[K]float64) float64 {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	return top
}

func percent(n int) float64 { return float64(n) / 100 }

func compareItems(a, b Item) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ObjectID, b.ObjectID),
		cmp.Compare(a.Candidate, b.Candidate))
}

func compareParts(a, b Part) int {
	return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Name, b.Name))
}
