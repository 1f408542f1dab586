// Package recommend defines which objects a recommendation orders, and what brings each
// of them in. Package ranking orders them.
//
//	next      objects that users turned to a few steps after the given ones
//	related   those, and objects that the same users turn to
//	together  objects that stand in baskets with the given ones
//	trending  objects that have more events than before
//	for-you   what next, related and pairs say of the objects of the user's session, what has the
//	          most events among the objects of the user's strongest filters, what is new by the
//	          date of the strategy's freshness, and what is popular
//
// A link of an object counts as in a ranking: a pair and a sequence as often as it occurs
// for each event of the object, and what the same users turn to by its weight, halved for
// every few steps that the object lies back (ranking.Aged); an object of a basket counts as
// often as one holds both, for each event of the given one. Of each kind the sum over all
// objects, divided by the highest sum, is a share from 0 to 1. The score of an object is
// the mean of its shares of the model's kinds, and its source is the kind of the highest.
// The score of a trending object is its trend (crowd.Trend), divided by the highest.
//
// The package does no I/O and keeps no data. The links come from the table crowd.
package recommend

import (
	"cmp"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// Model says what to recommend.
type Model string

// The models.
const (
	Related  Model = "related"
	Together Model = "together"
	Next     Model = "next"
	Trending Model = "trending"
	ForYou   Model = "for-you"
)

// Models are all models.
var Models = []Model{Related, Together, Next, Trending, ForYou}

// The sources of entries beside the names of the features pairs, sequence and neighbours.
const (
	Likes   = "likes"   // the objects with the most events of the user's strongest filters
	New     = "new"     // the objects with the newest dates
	Popular = "popular" // the objects with the most events
	bought  = "bought"  // baskets
	rising  = "trending"
	Catalog = "catalog" // objects of the index, where those with events are too few
)

// kinds are those that a model asks for, as crowd.Kind numbers them.
var kinds = map[Model][]crowd.Kind{
	ForYou: {crowd.Follows, crowd.Sequence, crowd.Together}, Related: {crowd.Sequence, crowd.Together},
	Next: {crowd.Sequence}, Together: {crowd.Bought},
}

// sources are the names of kinds.
var sources = [crowd.Kinds]string{ranking.Pairs, ranking.Sequence, ranking.Related, bought}

// OfObjects reports whether the model is about given objects.
func (m Model) OfObjects() bool { return m == Related || m == Next || m == Together }

// links returns the links of a kind.
func links(of *ranking.Neighbours, kind crowd.Kind) []ranking.Pair {
	if kind == crowd.Bought {
		return of.Bought
	}
	return *of.Lists()[kind]
}

// Entry is an object with what brings it in.
type Entry struct {
	ObjectID string
	Score    float64 // from 0 to 1
	Source   string
}

// Linked returns the objects to which some objects have links that the model asks for, the
// best first, and by objectID where scores are equal.
func Linked(m Model, of []ranking.Neighbours) []Entry {
	scores := map[string]*Entry{}
	best := map[string]float64{}
	for _, kind := range kinds[m] {
		sums := map[string]float64{}
		top := 0.0
		for i := range of {
			factor := factor(&of[i], kind)
			for _, p := range links(&of[i], kind) {
				sums[p.ObjectID] += factor * p.Count
				top = max(top, sums[p.ObjectID])
			}
		}
		for id, sum := range sums {
			if sum <= 0 {
				continue
			}
			e := scores[id]
			if e == nil {
				e = &Entry{ObjectID: id}
				scores[id] = e
			}
			share := sum / top
			e.Score += share / float64(len(kinds[m]))
			if share > best[id] {
				best[id], e.Source = share, sources[kind]
			}
		}
	}
	all := make([]Entry, 0, len(scores))
	for _, e := range scores {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.ObjectID, b.ObjectID))
	})
	return all
}

// factor is what a link of a kind of an object counts.
func factor(of *ranking.Neighbours, kind crowd.Kind) float64 {
	switch {
	case kind == crowd.Together:
		return ranking.Aged(of.Age)
	case !of.Last || of.Events <= 0:
		return 0
	}
	return 1 / of.Events
}

// OfTrends returns the entries of rising objects, the highest first.
func OfTrends(all []crowd.Scored) []Entry {
	entries := make([]Entry, len(all))
	for i, r := range all {
		entries[i] = Entry{ObjectID: r.ObjectID, Score: r.Score / all[0].Score, Source: rising}
	}
	return entries
}

// ListedIDs returns the objects of lists, the first list first.
func ListedIDs(lists [][]crowd.Scored) []string {
	var ids []string
	for _, list := range lists {
		for _, o := range list {
			ids = append(ids, o.ObjectID)
		}
	}
	return ids
}

// Pool collects the entries of a recommendation, each object once.
type Pool struct {
	Entries []Entry
	taken   map[string]bool
}

// NewPool returns a pool that takes none of some objects.
func NewPool(without ...[]string) *Pool {
	p := &Pool{taken: map[string]bool{}}
	for _, ids := range without {
		for _, id := range ids {
			p.taken[id] = true
		}
	}
	return p
}

// Add adds entries whose objects the pool has not taken yet, up to most in all.
func (p *Pool) Add(most int, entries ...Entry) {
	for _, e := range entries {
		if len(p.Entries) >= most {
			return
		}
		if !p.taken[e.ObjectID] {
			p.taken[e.ObjectID] = true
			p.Entries = append(p.Entries, e)
		}
	}
}

// From returns entries of a source without scores.
func From(source string, ids []string) []Entry {
	entries := make([]Entry, len(ids))
	for i, id := range ids {
		entries[i] = Entry{ObjectID: id, Source: source}
	}
	return entries
}
