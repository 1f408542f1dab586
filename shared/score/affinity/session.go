package affinity

import (
	"cmp"
	"math"
	"slices"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Bounds of a session. The encoded events leave room for sections that later
// versions add.
const (
	MaxSessionEvents = 50
	MaxSessionBytes  = 16 << 10 // stored form
	maxEventBytes    = 15 << 10 // of it, the events
)

// Session holds the newest events of a user that score: a pure function of the
// log, like the profile. An event belongs to it if the strategy scores its type
// and name above 0 and the window contains its time. It holds the
// MaxSessionEvents newest ones by time and then event ID, and fewer if these
// take more than MaxSessionBytes: the oldest are left out first. Sessions are
// immutable, so copies may share their slices.
type Session struct {
	// Events are the newest first. Their counts are those of the facets that the
	// strategy scores, as the client sent them, sorted by facet and value.
	// Aliases are not applied.
	Events []Event
}

// NewSession makes a session of scoring events of the window, newest first. It
// keeps the counts of the facets that the strategy scores, and as many events as
// fit the stored form. It shares the texts of the events.
func NewSession(c *Compiled, events []Event) Session {
	kept := c.sessionEvents(events)
	return Session{Events: kept[:fit(kept)]}
}

// sessionEvents returns events with the counts that sessions keep.
func (c *Compiled) sessionEvents(events []Event) []Event {
	kept := make([]Event, len(events))
	for i, e := range events {
		kept[i] = e
		kept[i].Counts = c.sessionCounts(e.Counts)
	}
	return kept
}

// sessionCounts returns the counts above 0 of the facets that score, sorted,
// each filter once.
func (c *Compiled) sessionCounts(all []Count) []Count {
	var counts []Count
	for _, n := range all {
		if _, ok := c.indexes[n.Facet]; ok && n.N > 0 {
			counts = append(counts, n)
		}
	}
	slices.SortFunc(counts, compareFilters)
	merged := counts[:0]
	for _, n := range counts {
		if last := len(merged) - 1; last >= 0 && compareFilters(merged[last], n) == 0 {
			merged[last].N += n.N
			continue
		}
		merged = append(merged, n)
	}
	return merged
}

func compareFilters(a, b Count) int {
	return cmp.Or(cmp.Compare(a.Facet, b.Facet), cmp.Compare(a.Value, b.Value))
}

// Within returns the session without the events that a later window of the same
// user does not contain: they have left it or are deleted. Its events are again
// the newest ones of the log, because such events are the oldest.
func (s Session) Within(w Window) Session {
	outside := func(e Event) bool { return !w.Contains(e.Time) }
	if !slices.ContainsFunc(s.Events, outside) {
		return s
	}
	return Session{Events: slices.DeleteFunc(slices.Clone(s.Events), outside)}
}

// First returns the session of the n newest events.
func (s Session) First(n int) Session { return Session{Events: s.Events[:min(n, len(s.Events))]} }

// Scores returns the scores of the session's filters at a time (ms), each with
// one score, in the order of profiles:
//
//	score(filter) = sum over the session's events
//	                of eventScore x facetScore x count x 2^-(rank/k)
//
// for a half-life of k events, where the newest event has rank 0 and every event
// of the session has the next one. For a half-life h of time the last factor is
// 2^-((now - time)/h), as in a profile, and 1 for an absent half-life.
func (s Session) Scores(c *Compiled, h strategy.HalfLife, now int64) []Affinity {
	sums := map[filter]float64{}
	k, inEvents := h.Events()
	for rank, e := range s.Events {
		exponent := 0.0
		switch {
		case inEvents:
			exponent = float64(rank) / k
		case h.Millis() > 0:
			exponent = age(max(now, e.Time), e.Time) / h.Millis()
		}
		points := c.points[Pair{Type: string(e.Type), Name: e.Name}] * math.Exp2(-exponent)
		for _, n := range e.Counts {
			facet, ok := c.indexes[n.Facet]
			if !ok || points == 0 {
				continue
			}
			value := n.Value
			if to, ok := c.aliases[facet][value]; ok {
				value = to
			}
			if !c.rules[facet].Scores(value) {
				continue
			}
			sums[filter{n.Facet, value}] += points * c.weights[facet] * float64(n.N)
		}
	}
	scores := make([]Affinity, 0, len(sums))
	for f, sum := range sums {
		if sum > 0 {
			scores = append(scores, Affinity{Facet: f.facet, Value: f.value, Scores: []float64{sum}})
		}
	}
	slices.SortFunc(scores, byRank)
	return scores
}

// ReferenceSession computes a session from all events of a user, which are in
// the order of the log: by time and then event ID. Like Reference it follows the
// definition and is not optimized.
func ReferenceSession(events []Event, s strategy.Strategy, w Window) Session {
	var newest []Event
	for _, e := range slices.Backward(events) {
		if s.EventScore(e.Type, e.Name) <= 0 || !w.Contains(e.Time) {
			continue
		}
		sums := map[filter]int{}
		for _, c := range e.Counts {
			if s.FacetScore(c.Facet) > 0 && c.N > 0 {
				sums[filter{c.Facet, c.Value}] += c.N
			}
		}
		e.Counts = nil
		for f, n := range sums {
			e.Counts = append(e.Counts, Count{Facet: f.facet, Value: f.value, N: n})
		}
		slices.SortFunc(e.Counts, compareFilters)
		newest = append(newest, e)
	}
	n := min(len(newest), MaxSessionEvents)
	for n > 0 && len(appendEvents(nil, newest[:n])) > maxEventBytes {
		n--
	}
	return Session{Events: newest[:n]}
}
