package strategy

import (
	"maps"
	"slices"
)

// Change is one difference between two strategies. Before and After are
// numbers, texts, half-lives or lists of them; nil means that a strategy does
// not give the value.
type Change struct {
	// Key is the key of the strategy, with its path inside ranking, such as
	// ranking.pairs.weight. For a list that is only in another order it ends in
	// ".order".
	Key string `json:"key"`
	// Of names the entry: the type and name of an event, a facet, or a facet and
	// the value of an alias. Allowed values have one entry for each facet.
	Of     []string `json:"of,omitempty"`
	Before any      `json:"before"`
	After  any      `json:"after"`
}

// Diff returns what changed from a to b: nothing if they are equal.
func Diff(a, b Strategy) []Change {
	d := &differ{}
	d.events(a.EventsScoring, b.EventsScoring)
	d.facets(a.FacetsScoring, b.FacetsScoring)
	if a.PersonalizationImpact != b.PersonalizationImpact {
		d.add("personalizationImpact", nil, a.PersonalizationImpact, b.PersonalizationImpact)
	}
	if !slices.Equal(a.HalfLives, b.HalfLives) {
		d.add("halfLives", nil, listed(a.HalfLives), listed(b.HalfLives))
	}
	d.aliases(a.Aliases, b.Aliases)
	if !sameIgnored(a, b) {
		d.add("ignoredValues", nil, orNil(a.IgnoredValues, a.IgnoredValues != nil),
			orNil(b.IgnoredValues, b.IgnoredValues != nil))
	}
	d.allowed(a.AllowedValues, b.AllowedValues)
	d.ranking("ranking", a.Ranking, b.Ranking)
	for _, name := range bothKeys(a.Placements, b.Placements) {
		d.placement(keyPath("placements", name), a.Placements[name], b.Placements[name])
	}
	return d.changes
}

func listed(halfLives []HalfLife) any {
	if len(halfLives) == 0 {
		return nil
	}
	return halfLives
}

type differ struct{ changes []Change }

func (d *differ) add(key string, of []string, before, after any) {
	d.changes = append(d.changes, Change{Key: key, Of: of, Before: before, After: after})
}

// entry is an entry of one of the two lists of scores.
type entry struct {
	of    []string
	score int
}

func (d *differ) events(a, b []EventScore) {
	list := func(scores []EventScore) (list []entry) {
		for _, e := range scores {
			list = append(list, entry{[]string{string(e.EventType), e.EventName}, e.Score})
		}
		return list
	}
	d.scores("eventsScoring", list(a), list(b))
}

func (d *differ) facets(a, b []FacetScore) {
	list := func(scores []FacetScore) (list []entry) {
		for _, f := range scores {
			list = append(list, entry{[]string{f.FacetName}, f.Score})
		}
		return list
	}
	d.scores("facetsScoring", list(a), list(b))
}

func (d *differ) scores(key string, a, b []entry) {
	find := func(list []entry, of []string) int {
		return slices.IndexFunc(list, func(e entry) bool { return slices.Equal(e.of, of) })
	}
	before := len(d.changes)
	for _, e := range b {
		switch i := find(a, e.of); {
		case i < 0:
			d.add(key, e.of, nil, e.score)
		case a[i].score != e.score:
			d.add(key, e.of, a[i].score, e.score)
		}
	}
	for _, e := range a {
		if find(b, e.of) < 0 {
			d.add(key, e.of, e.score, nil)
		}
	}
	if len(d.changes) == before && !slices.EqualFunc(a, b, func(x, y entry) bool { return slices.Equal(x.of, y.of) }) {
		d.add(key+".order", nil, names(a), names(b))
	}
}

func names(list []entry) (all [][]string) {
	for _, e := range list {
		all = append(all, e.of)
	}
	return all
}

func (d *differ) aliases(a, b map[string]map[string]string) {
	for _, facet := range bothKeys(a, b) {
		for _, value := range bothKeys(a[facet], b[facet]) {
			was, had := a[facet][value]
			is, has := b[facet][value]
			if was != is || had != has {
				d.add("aliases", []string{facet, value}, orNil(was, had), orNil(is, has))
			}
		}
	}
}

func (d *differ) allowed(a, b map[string]ValueSet) {
	for _, facet := range bothKeys(a, b) {
		if was, is := a[facet], b[facet]; !maps.Equal(was, is) {
			d.add("allowedValues", []string{facet}, orNil(sortedKeys(was), len(was) > 0), orNil(sortedKeys(is), len(is) > 0))
		}
	}
}

// bothKeys returns the keys of either map, sorted.
func bothKeys[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(sortedKeys(a), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (d *differ) ranking(key string, a, b *Ranking) {
	before, after := a.given(), b.given()
	for i, v := range before {
		if v.value != after[i].value {
			d.add(key+v.key, nil, v.value, after[i].value)
		}
	}
}

// placement compares the rankings of a placement. One that gives no key is a change where only one strategy has it.
func (d *differ) placement(key string, a, b *Ranking) {
	changes := len(d.changes)
	d.ranking(key, a, b)
	if (a == nil) != (b == nil) && len(d.changes) == changes {
		d.add(key, nil, orNil(struct{}{}, a != nil), orNil(struct{}{}, b != nil))
	}
}

// given is a key of a ranking with its value, nil if it is absent.
type given struct {
	key   string
	value any
}

// given returns every key of a ranking, in the order of the type.
func (r *Ranking) given() []given {
	full := Ranking{}
	if r != nil {
		full = *r
	}
	session, popularity := deref(full.Session), deref(full.Popularity)
	pairs, freshness := deref(full.Pairs), deref(full.Freshness)
	return []given{
		{".contrast", orNil(string(full.Contrast), full.Contrast != "")},
		{".session.halfLife", orNil(session.HalfLife, !session.HalfLife.IsZero())},
		{".session.weight", weightOrNil(session.Weight)},
		{".popularity.halfLife", orNil(popularity.HalfLife, !popularity.HalfLife.IsZero())},
		{".popularity.weight", weightOrNil(popularity.Weight)},
		{".pairs.weight", weightOrNil(pairs.Weight)},
		{".sequence.weight", weightOrNil(deref(full.Sequence).Weight)},
		{".neighbours.weight", weightOrNil(deref(full.Neighbours).Weight)},
		{".freshness.attribute", orNil(freshness.Attribute, freshness.Attribute != "")},
		{".freshness.halfLife", orNil(freshness.HalfLife, !freshness.HalfLife.IsZero())},
		{".freshness.weight", weightOrNil(freshness.Weight)},
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func orNil[T any](v T, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

func weightOrNil(p *int) any { return orNil(deref(p), p != nil) }
