package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// Anybody with a key of a page can send events of any names and facets. So of an app's
// day at most MaxNames kinds of events, as many facets and as many tokens are counted by
// name in each shard, and of facets only those of at most maxFacet bytes. What comes beyond
// is Left.
const (
	MaxNames = 200
	maxFacet = 256
)

// Kind is the type and the name of events.
type Kind struct{ Type, Name string }

// Names are the accepted events of a day by kind and by facet. An event counts once for
// each facet of which it has a filter.
type Names struct {
	Events map[Kind]int64
	Facets map[string]int64
	// Nobody are the events of tokens that name nobody: see event.NamesNobody.
	Nobody map[string]int64
	// Left is how many events, facets of events and tokens are counted under no name.
	Left int64
}

// Add adds other names.
func (n *Names) Add(other Names) {
	if n.Events == nil {
		n.Events, n.Facets, n.Nobody = map[Kind]int64{}, map[string]int64{}, map[string]int64{}
	}
	for kind, count := range other.Events {
		n.Events[kind] += count
	}
	for facet, count := range other.Facets {
		n.Facets[facet] += count
	}
	for token, count := range other.Nobody {
		n.Nobody[token] += count
	}
	n.Left += other.Left
}

// Empty reports whether nothing is counted.
func (n Names) Empty() bool { return len(n.Events)+len(n.Facets)+len(n.Nobody) == 0 && n.Left == 0 }

// names are those that a process counts for an app's day.
type names struct {
	events map[Kind]*named
	facets map[string]*named
	nobody map[string]*named
	left   int64  // in no batch yet
	event  uint64 // number of the event that is counted
	fresh  bool   // some are not admitted
	counts bool   // some admitted ones, or left, are in no batch yet
}

// named counts the events of a name.
type named struct {
	n     int64  // in no batch yet
	event uint64 // that it counted last
	state state
}

// state says whether the table has a place for a name.
type state byte

const (
	unknown state = iota
	admitted
	refused
)

// Named counts n accepted events by kind and facet. kind returns that of the i-th event,
// or none for an event that is not counted. facets calls add with the facet of each
// filter of the i-th event, in any order and as often as it likes.
func (c *Counter) Named(app string, n int, kind func(i int) Kind, facets func(i int, add func(facet string))) {
	if c == nil || app == "" || n == 0 {
		return
	}
	e := c.entry(app)
	if e == nil {
		return
	}
	add := func(facet string) { e.names.countFacet(c, facet) }
	one := func(i int) { // an event may have 2,000 filters, so others may count between two
		k := kind(i)
		if k == (Kind{}) {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.names.event++
		e.names.countEvent(c, k)
		facets(i, add)
	}
	for i := range n {
		one(i)
	}
}

func (s *names) countEvent(c *Counter, k Kind) {
	t := s.events[k]
	if t == nil {
		if !c.room(len(s.events)) {
			s.leave(1)
			return
		}
		t = enter(&s.events, Kind{strings.Clone(k.Type), strings.Clone(k.Name)})
	}
	s.count(t)
}

func (s *names) countFacet(c *Counter, facet string) {
	if t := s.facets[facet]; t != nil {
		s.count(t)
	} else if len(facet) > maxFacet {
		s.leave(1)
	} else {
		s.countText(c, &s.facets, facet)
	}
}

// countNobody counts an event of a token that names nobody, by itself.
func (s *names) countNobody(c *Counter, token string) {
	s.event++
	s.countText(c, &s.nobody, token)
}

func (s *names) countText(c *Counter, all *map[string]*named, text string) {
	t := (*all)[text]
	if t == nil {
		if !c.room(len(*all)) {
			s.leave(1)
			return
		}
		t = enter(all, strings.Clone(text))
	}
	s.count(t)
}

// enter adds a name that has a place.
func enter[K comparable](all *map[K]*named, name K) *named {
	if *all == nil {
		*all = map[K]*named{}
	}
	t := &named{}
	(*all)[name] = t
	return t
}

// count counts the event, once.
func (s *names) count(t *named) {
	if t.event == s.event {
		return
	}
	t.event = s.event
	switch t.state {
	case refused:
		s.leave(1)
		return
	case unknown:
		s.fresh = true
	case admitted:
		s.counts = true
	}
	t.n++
}

func (s *names) leave(n int64) {
	s.left += n
	s.counts = true
}

// room takes a place for a name beside n of its kind.
func (c *Counter) room(n int) bool {
	if n >= MaxNames {
		return false
	}
	if c.names.Add(1) <= maxAllNames {
		return true
	}
	c.names.Add(-1)
	return false
}

func (s *names) size() int { return len(s.events) + len(s.facets) + len(s.nobody) }

// waiting reports whether something is in no batch yet.
func (s *names) waiting() bool { return s.fresh || s.counts }

// admitNames asks the table for places for the names that it does not know of this
// process yet, if there are any. Processes that ask at the same time may exceed the
// number of places by their own names.
func (c *Counter) admitNames(ctx context.Context, at appDay, e *entry) error {
	e.mu.Lock()
	fresh := e.names.fresh
	e.mu.Unlock()
	if !fresh {
		return nil
	}
	known, err := c.table.KnownNames(ctx, at.app, at.day, c.shard)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names.fresh = false
	admit(&e.names, e.names.events, known.Events)
	admit(&e.names, e.names.facets, known.Facets)
	admit(&e.names, e.names.nobody, known.Nobody)
	return nil
}

// admit gives names a place while there are any, those of the most events first.
func admit[K comparable](s *names, all map[K]*named, known map[K]int64) {
	places := MaxNames - len(known)
	for k, t := range all {
		if _, ok := known[k]; t.state == admitted && !ok {
			places-- // its batch is not stored
		}
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b K) int { return cmp.Compare(all[b].n, all[a].n) })
	for _, k := range keys {
		t := all[k]
		if t.state != unknown {
			continue
		}
		_, ok := known[k]
		switch {
		case ok:
			t.state = admitted
		case places > 0:
			places--
			t.state = admitted
		default:
			t.state = refused
			s.leave(t.n)
			t.n = 0
			continue
		}
		s.counts = s.counts || t.n > 0
	}
}

// take returns what is in no batch yet.
func (s *names) take() Names {
	if !s.counts {
		return Names{}
	}
	taken := Names{Left: s.left}
	s.left, s.counts = 0, false
	taken.Events, taken.Facets, taken.Nobody = takeOf(s.events), takeOf(s.facets), takeOf(s.nobody)
	return taken
}

// takeOf takes what is in no batch yet of one kind of names, nil if nothing is.
func takeOf[K comparable](all map[K]*named) (taken map[K]int64) {
	for k, t := range all {
		if t.state == admitted && t.n > 0 {
			if taken == nil {
				taken = map[K]int64{}
			}
			taken[k], t.n = t.n, 0
		}
	}
	return taken
}
