package ranking

import (
	"math/bits"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Ranker is a strategy prepared for ranking. It is immutable: all requests of
// an app may share it.
type Ranker struct {
	strategy strategy.Strategy
	ranking  strategy.FullRanking
	weights  weights
	points   map[kind]float64 // kinds of events that score
	facets   facetTable
}

// weights are those of ranking, as fractions.
type weights struct {
	session, popularity, freshness float64
	linked                         [kinds]float64
}

// kind is a type and a name of events.
type kind struct {
	typ  event.Type
	name string
}

// scoredFacet is a facet that the strategy scores.
type scoredFacet struct {
	hash    uint64
	name    string
	weight  float64
	aliases map[string]string   // value -> value that it counts as
	merged  map[string][]string // value -> values that count as it
	rule    strategy.Rule
}

// alias returns the value that a value counts as.
func (f *scoredFacet) alias(value string) string {
	if to, ok := f.aliases[value]; ok {
		return to
	}
	return value
}

// New prepares a valid strategy.
func New(s strategy.Strategy) *Ranker {
	r := &Ranker{strategy: s, ranking: s.RankingOrDefault(), points: make(map[kind]float64, len(s.EventsScoring))}
	full := &r.ranking
	r.weights = weights{session: percent(full.Session.Weight), popularity: percent(full.Popularity.Weight),
		freshness: percent(full.Freshness.Weight)}
	for kind, weight := range full.Links() {
		r.weights.linked[kind] = percent(weight)
	}
	for _, e := range s.EventsScoring {
		if e.Score > 0 {
			r.points[kind{e.EventType, e.EventName}] = float64(e.Score)
		}
	}
	var scored []scoredFacet
	for _, f := range s.FacetsScoring {
		if f.Score <= 0 {
			continue
		}
		aliases := s.Aliases[f.FacetName]
		merged := make(map[string][]string, len(aliases))
		for from, to := range aliases {
			merged[to] = append(merged[to], from)
		}
		scored = append(scored, scoredFacet{
			hash: hashText(f.FacetName), name: f.FacetName, weight: float64(f.Score), aliases: aliases, merged: merged,
			rule: s.Rule(f.FacetName),
		})
	}
	r.facets = newFacetTable(scored)
	return r
}

// facetTable finds a scored facet by its name.
type facetTable struct {
	facets []scoredFacet
	slots  []slot // a power of 2; keys are indexes in facets + 1
}

func newFacetTable(facets []scoredFacet) facetTable {
	t := facetTable{facets: facets, slots: make([]slot, tableSize(len(facets)))}
	for i, f := range facets {
		insert(t.slots, slot{f.hash, int32(i + 1)})
	}
	return t
}

// find returns the index of the facet, or -1 if the strategy does not score it.
func (t *facetTable) find(hash uint64, name string) int32 {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.key == 0 || s.hash == hash && t.facets[s.key-1].name == name {
			return s.key - 1
		}
	}
}

func (t *facetTable) byName(name string) int32 { return t.find(hashText(name), name) }

// slot is a place of a hash table.
type slot struct {
	hash uint64
	key  int32 // 0 = free
}

// insert puts s into the first free place.
func insert(slots []slot, s slot) {
	mask := uint64(len(slots) - 1)
	i := s.hash & mask
	for slots[i].key != 0 {
		i = (i + 1) & mask
	}
	slots[i] = s
}

// at returns the slot of a hash, or the free one where it belongs. It compares no
// texts.
func at(slots []slot, hash uint64) *slot {
	mask := uint64(len(slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if s := &slots[i]; s.key == 0 || s.hash == hash {
			return s
		}
	}
}

// grown returns slots with room for n entries.
func grown(slots []slot, n int) []slot {
	size := tableSize(n)
	if size <= len(slots) {
		return slots
	}
	more := make([]slot, size)
	for _, s := range slots {
		if s.key != 0 {
			insert(more, s)
		}
	}
	return more
}

// tableSize returns a power of 2 of which n entries fill a quarter to a half.
func tableSize(n int) int { return 4 << bits.Len(uint(n)) >> 1 }
