package ranking

import (
	"slices"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/affinity"
)

// MaxDiversified is how many places of an order diversity fills. The candidates
// that are left follow in the order of their scores.
const MaxDiversified = 250

var maxDiversified = MaxDiversified // less in tests

const (
	// maxCompared bounds the filters that one order compares: if all candidates
	// have more than 100,000 together, diversity fills fewer places.
	maxCompared = 25_000_000
	// maxPenalty bounds what an overlap takes from a score.
	maxPenalty = 1_000
)

// Diversify is the definition of diversity. items are candidates of q in the order
// of their scores s. Diversify fills one place after the other with the item that
// has the highest
//
//	s - (1 - lambda) / lambda x the highest overlap with an item before it
//
// which becomes its score. The factor is at most 1,000. Equal scores go by
// objectID, then place in the query. The order is that of maximal marginal
// relevance, lambda x s - (1 - lambda) x overlap (Carbonell and Goldstein, The use
// of MMR, SIGIR 1998).
//
// The overlap of two items is the Jaccard index of their filters, or of their
// values of the facet if the query names one: the number of common ones / the
// number of different ones, 0 if they have none. Filters are as the catalog has
// them: aliases are not applied.
//
// An item exceeds if maxPerValue of the items before it have one of its values of
// the facet. It has no place before an item that does not exceed. So that scores
// never rise from one place to the next, the first item that exceeds loses as much
// as it takes to equal the item before it, if it is higher, and all later ones lose
// as much. So do the items behind the last place that diversity fills.
//
// Ranker.Rank computes the same fast; tests compare the two.
func Diversify(q *Query, items []Item) []Item {
	rest, chosen := slices.Clone(items), []Item{}
	exceeding, loss := false, 0.0
	for len(rest) > 0 && len(chosen) < diversified(q) {
		var next Item
		at := -1
		for i, item := range rest {
			if _, exceeds := exceeded(q, chosen, item); exceeds && !exceeding {
				continue
			}
			if item = spaced(q, chosen, item); at < 0 || compareItems(item, next) < 0 {
				next, at = item, i
			}
		}
		if at < 0 { // all that are left exceed
			exceeding = true
			best := slices.MinFunc(rest, func(a, b Item) int { return compareItems(spaced(q, chosen, a), spaced(q, chosen, b)) })
			loss = lost(chosen, spaced(q, chosen, best))
			continue
		}
		if exceeding {
			value, _ := exceeded(q, chosen, next)
			next = behind(q, chosen, next, loss, Part{Name: q.Diversity.Facet + ":" + value, Value: -loss})
		}
		chosen = append(chosen, next)
		rest = slices.Delete(rest, at, at+1)
	}
	if len(rest) > 0 {
		loss = lost(chosen, rest[0])
	}
	for _, item := range rest {
		chosen = append(chosen, behind(q, chosen, item, loss))
	}
	return chosen
}

// spaced returns an item with what its overlap with those before it takes from its
// score.
func spaced(q *Query, before []Item, item Item) Item {
	highest, nearest := 0.0, ""
	for _, b := range before {
		if o := overlap(q, item, b); o > highest {
			highest, nearest = o, b.ObjectID
		}
	}
	loss := penalty(q) * highest
	item.Score = affinity.Rounded(item.Score - loss)
	if q.Explain && loss > 0 {
		item.Features = append(slices.Clip(item.Features), Feature{
			Name: Diversified, Value: -loss, Parts: []Part{{Name: nearest, Value: -loss}},
		})
	}
	return item
}

// behind returns an item that loses as much as all after it, and never stands
// higher than those before it.
func behind(q *Query, before []Item, item Item, loss float64, parts ...Part) Item {
	if loss == 0 {
		return item
	}
	item.Score = min(item.Score-loss, before[len(before)-1].Score) // rounding may lift it
	if q.Explain {
		f := Feature{Name: Diversified}
		if last := len(item.Features) - 1; last >= 0 && item.Features[last].Name == Diversified {
			f, item.Features = item.Features[last], item.Features[:last]
		}
		f.Value -= loss
		f.Parts = slices.Concat(f.Parts, parts)
		slices.SortStableFunc(f.Parts, func(a, b Part) int { return compareParts(b, a) })
		item.Features = append(slices.Clip(item.Features), f)
	}
	return item
}

// lost returns what an item loses to equal the last of those before it.
func lost(before []Item, item Item) float64 {
	return max(item.Score-before[len(before)-1].Score, 0)
}

// exceeded returns the first value of an item that maxPerValue of the items before
// it have. ok is false if it has none.
func exceeded(q *Query, before []Item, item Item) (value string, ok bool) {
	if q.Diversity.MaxPerValue == 0 {
		return "", false
	}
	for _, f := range compared(q, item) {
		n := 0
		for _, b := range before {
			if slices.Contains(compared(q, b), f) {
				n++
			}
		}
		if n >= q.Diversity.MaxPerValue {
			return f.Value, true
		}
	}
	return "", false
}

func overlap(q *Query, a, b Item) float64 {
	of, common := compared(q, a), 0
	with := compared(q, b)
	for _, f := range of {
		if slices.Contains(with, f) {
			common++
		}
	}
	return jaccard(common, len(of), len(with))
}

// jaccard returns the Jaccard index of two sets of a and b elements.
func jaccard(common, a, b int) float64 {
	if common == 0 {
		return 0
	}
	return float64(common) / float64(a+b-common)
}

// compared returns the filters of an item that diversity compares.
func compared(q *Query, item Item) []event.Filter {
	filters := q.Candidates[item.Candidate].Object.Filters()
	if facet := q.Diversity.Facet; facet != "" {
		filters = slices.DeleteFunc(filters, func(f event.Filter) bool { return f.Facet != facet })
	}
	return filters
}

// diversified returns how many places diversity fills.
func diversified(q *Query) int {
	places, _ := countPlaces(q.Candidates)
	return places
}

// countPlaces returns how many places of candidates diversity fills, and how many
// filters the items at these places can have.
func countPlaces(candidates []Candidate) (places, filters int) {
	most := 0
	for i := range candidates {
		n := candidates[i].Object.Len()
		filters, most = filters+n, max(most, n)
	}
	places = max(min(maxDiversified, maxCompared/max(filters, 1)), 1)
	return places, min(filters, places*most)
}

// DiversityBytes bounds the memory in bytes in which diversity compares candidates.
func DiversityBytes(candidates []Candidate) int64 {
	const each = 160 // at most 4 slots and 32 bytes, and as much again while they grow
	_, filters := countPlaces(candidates)
	return each * int64(filters)
}

// penalty returns what an overlap of 1 takes from a score.
func penalty(q *Query) float64 {
	lambda := q.Diversity.LambdaOrDefault()
	return min((1-lambda)/lambda, maxPenalty)
}
