package affinity

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/wire"
)

// MaxAdditions is the number of added events after which a profile must be computed
// again. Each addition multiplies all scores by a factor and adds to some, so it costs
// a relative error of some 4e-16. A thousand stay below 1e-12.
const MaxAdditions = 1_000

// Base is a profile of one reading of the log, with what it takes to add events to
// it. It costs the same however long the history is.
type Base struct {
	Profile Profile // with all its affinities
	Session Session
	Counted Counted
}

// Counted lists the newest events that a profile counts and whose kinds score. It
// tells an event that is new from one that is counted already.
type Counted struct {
	Events []CountedEvent // newest first: by time, then ID
	// After (ms): every counted event later than it is listed, if its kind scores.
	// math.MinInt64: every one.
	After int64
	// Additions is the number of events that were added since the profile was computed.
	Additions int
}

// CountedEvent is an event that a profile counts.
type CountedEvent struct {
	Time int64 // ms
	// ID is the event's ID. It is empty if the reader did not know it: a block holds no
	// IDs.
	ID string
	// Print is the fingerprint of the event's filters: a later resolution of its objects
	// may give it others.
	Print uint64
}

// Arrival is an event that may be counted already.
type Arrival struct {
	ID string
	Event
}

// AdditionLimits are how many events a base lists, and how many are added before its
// profile is computed again.
type AdditionLimits struct{ Events, Additions int }

// Refusal says why events cannot be added to a base. Then the profile must be computed
// from the log.
type Refusal int

const (
	NotRefused Refusal = iota
	// Worn: as many events were added as the limit allows.
	Worn
	// Expired: an event has left the window.
	Expired
	// Unclear: the list does not tell whether the base counts one of the events, with
	// these filters.
	Unclear
	// LeftOut: the base does not list a value of an event, and does not list all values.
	LeftOut
)

// NewBase completes a computed profile. events are the newest ones, as for NewSession,
// and ids are their IDs. It lists limit events at most, so there must be as many of
// them if there are more.
func NewBase(c *Compiled, events []Event, ids []string, limit int) (Session, Counted) {
	kept := c.sessionEvents(events)
	counted := Counted{After: math.MinInt64, Events: make([]CountedEvent, len(kept))}
	for i, e := range kept {
		counted.Events[i] = CountedEvent{Time: e.Time, ID: ids[i], Print: fingerprint(e.Counts)}
	}
	if n := len(kept); n >= limit && n > 0 {
		counted.After = kept[n-1].Time
	}
	return Session{Events: kept[:fit(kept)]}, counted
}

// fingerprint returns 64 bits of the counts of a session's event.
func fingerprint(counts []Count) uint64 {
	h := fnv.New64a()
	var b []byte
	for _, n := range counts {
		b = wire.AppendText(wire.AppendText(b[:0], n.Facet), n.Value)
		_, _ = h.Write(binary.AppendUvarint(b, uint64(n.N))) // it returns no error
	}
	return h.Sum64()
}

// Add returns the base with events that have arrived, as of w.Now. The window must be
// the one of the base, as of this time or a later one, and not end before an event. c
// must be the strategy of the base, and l.Events the limit of NewBase. The scores equal
// those of a computation from all events within a relative 1e-9.
func (b Base) Add(c *Compiled, w Window, arrivals []Arrival, l AdditionLimits) (Base, Refusal) {
	switch {
	case b.Counted.Additions >= l.Additions:
		return b, Worn
	case b.Profile.Until != math.MaxInt64 && w.Now >= b.Profile.Until:
		return b, Expired
	}
	fresh, ok := b.Counted.sift(c, w, arrivals)
	if !ok {
		return b, Unclear
	}
	p, ok := b.Profile.add(c, w, fresh)
	if !ok {
		return b, LeftOut
	}
	list := b.list(w)
	for _, a := range fresh {
		if c.scores(a.Event) {
			list.insert(a)
		}
	}
	session, counted := list.cut(l.Events)
	counted.Additions = b.Counted.Additions + max(1, len(fresh))
	return Base{Profile: p, Session: session, Counted: counted}, NotRefused
}

// scores reports whether the strategy scores events of the event's kind.
func (c *Compiled) scores(e Event) bool {
	return c.points[Pair{Type: string(e.Type), Name: e.Name}] > 0
}

// sift returns the arrivals that are not counted yet, with the counts of sessions, and
// those that change no score: these may be added twice. It returns false if it
// cannot tell.
func (k Counted) sift(c *Compiled, w Window, arrivals []Arrival) ([]Arrival, bool) {
	var fresh []Arrival
	listed := slices.Clone(k.Events)
	for _, a := range arrivals {
		if !w.Contains(a.Time) {
			if a.Time > w.Now {
				return nil, false
			}
			continue
		}
		a.Counts = c.sessionCounts(a.Counts)
		if !c.scores(a.Event) {
			fresh = append(fresh, a)
			continue
		}
		is := CountedEvent{a.Time, a.ID, fingerprint(a.Counts)}
		at := slices.IndexFunc(listed, func(e CountedEvent) bool {
			return e.Time == is.Time && (e.ID == is.ID || e.ID == "")
		})
		switch {
		case at >= 0 && listed[at] == is:
			continue
		case at >= 0 || a.Time <= k.After:
			return nil, false
		}
		fresh, listed = append(fresh, a), append(listed, is)
	}
	return fresh, true
}

// add adds events that the profile does not count. It returns false if a value
// may be one that the profile counts and does not list.
func (p Profile) add(c *Compiled, w Window, events []Arrival) (Profile, bool) {
	sc := NewScorer(c.Within(Bounds{}), w)
	for _, a := range events {
		sc.AddEvent(a.Event)
	}
	next, more := c.bounds.At(p, w.Now), sc.affinities()
	if sc.values > len(more) {
		return p, false // scored, and decayed to zero: the profile counts it in its total, or not yet
	}
	next.Affinities, more = merged(next.Affinities, more)
	if len(more) > 0 && p.Total > len(next.Affinities) {
		return p, false
	}
	next.Total += len(more)
	next.Affinities = append(next.Affinities, more...)
	slices.SortFunc(next.Affinities, byRank)
	if sc.known && (!next.Known || sc.latest > next.LastEventAt) {
		next.Known, next.LastEventAt = true, sc.latest
	}
	if next.Known {
		next.Until = min(next.Until, w.leaves(next.LastEventAt))
	}
	if sc.scored {
		next.Until = min(next.Until, w.leaves(sc.oldest))
	}
	if next.Truncated() {
		// The values left out stay so, but one of those listed may now join them. Then
		// another may have to take its place.
		again := next
		again.LeftOut = nil
		c.bounds.boundFacets(&again)
		return next, len(again.Affinities) == len(next.Affinities)
	}
	c.bounds.bound(&next)
	return next, true
}

// merged adds scores to the affinities of the same filters. It returns the rest.
func merged(affinities, more []Affinity) (sums, rest []Affinity) {
	by := make(map[filter][]float64, len(more))
	for _, a := range more {
		by[filter{a.Facet, a.Value}] = a.Scores
	}
	sums = make([]Affinity, len(affinities), len(affinities)+len(more))
	for i, a := range affinities {
		f := filter{a.Facet, a.Value}
		if scores := by[f]; scores != nil {
			a.Scores = slices.Clone(a.Scores)
			for k, s := range scores {
				a.Scores[k] += s
			}
			delete(by, f)
		}
		sums[i] = a
	}
	for _, a := range more {
		if by[filter{a.Facet, a.Value}] != nil {
			rest = append(rest, a)
		}
	}
	return sums, rest
}

// newestList is what a base lists, with the contents of the events of its session.
type newestList struct {
	events []CountedEvent
	after  int64
	whole  []Event // of events; the session of the base holds the first ones, and those added
	known  []bool  // by event: whether whole has it
}

// list returns the list of a base without events that have left the window. They are
// the oldest, so none has to take their places.
func (b Base) list(w Window) *newestList {
	n := len(b.Counted.Events)
	for n > 0 && !w.Contains(b.Counted.Events[n-1].Time) {
		n--
	}
	l := &newestList{after: b.Counted.After, events: slices.Clone(b.Counted.Events[:n])}
	l.whole, l.known = make([]Event, n), make([]bool, n)
	for i := range copy(l.whole, b.Session.Events) {
		l.known[i] = true
	}
	return l
}

// insert adds an event. Another one of its time has an ID.
func (l *newestList) insert(a Arrival) {
	at := slices.IndexFunc(l.events, func(e CountedEvent) bool {
		return cmp.Or(cmp.Compare(e.Time, a.Time), cmp.Compare(e.ID, a.ID)) < 0
	})
	if at < 0 {
		at = len(l.events)
	}
	l.events = slices.Insert(l.events, at, CountedEvent{a.Time, a.ID, fingerprint(a.Counts)})
	l.whole, l.known = slices.Insert(l.whole, at, a.Event), slices.Insert(l.known, at, true)
}

// cut returns the session and the list of the newest limit events. An event that did
// not fit the session does not fit it now, as every event costs bytes.
func (l *newestList) cut(limit int) (Session, Counted) {
	if len(l.events) > limit {
		l.after = max(l.after, l.events[limit].Time)
		l.events, l.known = l.events[:limit], l.known[:limit]
	}
	n := slices.Index(l.known, false)
	if n < 0 {
		n = len(l.known)
	}
	newest := l.whole[:n]
	return Session{Events: newest[:fit(newest)]}, Counted{Events: l.events, After: l.after}
}
