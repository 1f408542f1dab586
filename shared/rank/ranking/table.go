package ranking

import (
	"math"

	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// term is a filter that scores for the user of a request.
type term struct {
	facet            int32 // in Ranker.facets
	value            string
	profile, session float64 // its scores with contrast, from finish on
}

// scores are those of a term while they are added up.
type scores struct{ profile, session sum }

// key is a filter of objects that counts as a term: the term's own filter, or
// one with an alias to it.
type key struct {
	facet int32
	value string
	term  int32
}

// table finds the terms of a request by the filters of objects.
type table struct {
	terms []term
	added []scores // by term
	keys  []key
	slots []slot // a power of 2; keys are indexes in keys + 1
}

// reset makes room for n keys. Aliases may add more.
func (t *table) reset(n int) {
	clear(t.terms) // the strings belong to the last request
	clear(t.keys)
	t.terms, t.added, t.keys = t.terms[:0], t.added[:0], t.keys[:0]
	if size := tableSize(n); size <= cap(t.slots) {
		t.slots = t.slots[:size]
		clear(t.slots)
	} else {
		t.slots = make([]slot, size)
	}
}

// find returns the key of a filter, or nil.
func (t *table) find(hash uint64, facet int32, value string) *key {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.key == 0 {
			return nil
		}
		if s.hash == hash {
			if k := &t.keys[s.key-1]; k.facet == facet && k.value == value {
				return k
			}
		}
	}
}

// put sets the term of a filter.
func (t *table) put(hash uint64, facet int32, value string, term int32) {
	if k := t.find(hash, facet, value); k != nil {
		k.term = term
		return
	}
	t.keys = append(t.keys, key{facet, value, term})
	insert(t.slots, slot{hash, int32(len(t.keys))})
	if 2*len(t.keys) > len(t.slots) {
		t.grow()
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	for _, s := range old {
		if s.key != 0 {
			insert(t.slots, s)
		}
	}
}

// term returns the scores of a filter's term and adds the term where it is new.
func (t *table) term(r *Ranker, facet int32, value string) *scores {
	hash := hashFilter(r.facets.facets[facet].hash, value)
	if k := t.find(hash, facet, value); k != nil {
		return &t.added[k.term]
	}
	t.terms, t.added = append(t.terms, term{facet: facet, value: value}), append(t.added, scores{})
	t.put(hash, facet, value, int32(len(t.terms)-1))
	return &t.added[len(t.added)-1]
}

// fill makes the table of a query's profile and session. personal reports
// whether any filter scores.
func (t *table) fill(r *Ranker, q *Query) (personal bool) {
	filters := len(q.Affinities)
	for i := range q.Session.Events {
		filters += len(q.Session.Events[i].Counts)
	}
	t.reset(filters)
	for i := range q.Affinities {
		a := &q.Affinities[i]
		if q.HalfLife >= len(a.Scores) || !positive(a.Scores[q.HalfLife]) {
			continue
		}
		if facet := r.facets.byName(a.Facet); facet >= 0 {
			t.term(r, facet, r.facets.facets[facet].alias(a.Value)).profile.addBounded(a.Scores[q.HalfLife])
		}
	}
	for rank := range q.Session.Events {
		t.addEvent(r, q, rank)
	}
	t.finish(r, q.Frequencies)
	return len(t.terms) > 0
}

// addEvent adds the session's event of a rank, as affinity.Session.Scores does.
func (t *table) addEvent(r *Ranker, q *Query, rank int) {
	e := &q.Session.Events[rank]
	points := r.points[kind{e.Type, e.Name}] * decay(r.ranking.Session.HalfLife, rank, float64(q.Now)-float64(e.Time))
	for _, c := range e.Counts {
		facet := r.facets.byName(c.Facet)
		if facet < 0 {
			continue
		}
		f := &r.facets.facets[facet]
		score, value := points*f.weight*float64(c.N), f.alias(c.Value)
		if score > 0 && f.rule.Scores(value) {
			t.term(r, facet, value).session.add(score)
		}
	}
}

// decay returns the factor of an event of a session. An event in the future has
// no age.
func decay(h strategy.HalfLife, rank int, age float64) float64 {
	if events, ok := h.Events(); ok {
		return math.Exp2(-float64(rank) / events)
	}
	return math.Exp2(-max(age, 0) / h.Millis())
}

// finish scales the scores by their highest, multiplies them by the contrasts,
// and adds the filters that are aliases of terms.
func (t *table) finish(r *Ranker, known *Frequencies) {
	profile, session := 0.0, 0.0
	for i := range t.added {
		profile, session = max(profile, t.added[i].profile.value()), max(session, t.added[i].session.value())
	}
	for i := range t.terms {
		e, a := &t.terms[i], &t.added[i]
		c := r.contrast(known, e)
		e.profile = share(a.profile.value(), profile) * c
		e.session = share(a.session.value(), session) * c
		f := &r.facets.facets[e.facet]
		for _, from := range f.merged[e.value] {
			t.put(hashFilter(f.hash, from), e.facet, from, int32(i))
		}
	}
}

// contrast returns the factor of a term, as the function contrast does.
func (r *Ranker) contrast(known *Frequencies, e *term) float64 {
	if known == nil || r.ranking.Contrast != strategy.ContrastIDF {
		return 1
	}
	f := &r.facets.facets[e.facet]
	frequency := known.Filters[event.Filter{Facet: f.name, Value: e.value}]
	for _, from := range f.merged[e.value] {
		frequency += known.Filters[event.Filter{Facet: f.name, Value: from}]
	}
	return IDF(known.Objects, frequency)
}
