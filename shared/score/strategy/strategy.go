// Package strategy defines an app's strategy: a score for each kind of event, a
// score for each facet, and optionally the half-lives by which scores decay, the
// aliases that merge values, the values that score nothing, and the ranking by which
// profiles order objects.
//
// A strategy has the names and the JSON of Algolia's Personalization API. Its
// decoder is strict: a misspelt key is refused when the client sends it,
// instead of showing up as wrong profiles. Package affinity compiles a strategy
// for scoring. The package does no I/O: package config stores every version.
package strategy

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
)

// EventScore is the score of the events with one type and name. Both must
// match.
type EventScore struct {
	EventName string     `json:"eventName"`
	EventType event.Type `json:"eventType"`
	Score     int        `json:"score"` // 0 to MaxScore; at 0 the events do not score
}

// FacetScore is the score of one facet: the weight of its values.
type FacetScore struct {
	FacetName string `json:"facetName"`
	Score     int    `json:"score"` // 0 to MaxScore; at 0 the facet does not score
}

// Strategy defines which events and facets score, and how scores decay. The
// zero value is valid and scores nothing. Strategies are immutable, so copies
// may share their slices and maps.
type Strategy struct {
	EventsScoring []EventScore `json:"eventsScoring"`
	FacetsScoring []FacetScore `json:"facetsScoring"`

	// PersonalizationImpact is 0 to MaxImpact. Search engines read it back;
	// scoring does not use it.
	PersonalizationImpact int `json:"personalizationImpact"`

	// HalfLives are times. An affinity has one score for each of them, and the
	// first one determines the order. Without half-lives a score is a plain
	// sum, which does not decay.
	HalfLives []HalfLife `json:"halfLives,omitempty"`

	// Aliases merge values when scoring: facet -> value as sent -> value that
	// it counts as. An alias is one step: its target has no alias.
	Aliases map[string]map[string]string `json:"aliases,omitempty"`
	// IgnoredValues score nothing in any facet: values that say that there is none. Nil
	// stands for the values of IgnoredOrDefault, and an empty list for none. Like
	// AllowedValues they are compared with the value after aliases.
	IgnoredValues []string `json:"ignoredValues,omitzero"`
	// AllowedValues are the only values of a facet that score: facet -> values. A facet
	// without an entry has no such list.
	AllowedValues map[string]ValueSet `json:"allowedValues,omitempty"`
	// Ranking defines how profiles order objects. Scoring does not use it.
	Ranking *Ranking `json:"ranking,omitempty"`
	// Placements are rankings by name, each in place of Ranking where a request names it.
	Placements map[string]*Ranking `json:"placements,omitempty"`
}

// EventScore returns the score of events with this type and name, or 0 if the
// strategy does not name them.
func (s Strategy) EventScore(typ event.Type, name string) int {
	for _, e := range s.EventsScoring {
		if e.EventType == typ && e.EventName == name {
			return e.Score
		}
	}
	return 0
}

// FacetScore returns the score of a facet, or 0 if the strategy does not name
// it.
func (s Strategy) FacetScore(facet string) int {
	for _, f := range s.FacetsScoring {
		if f.FacetName == facet {
			return f.Score
		}
	}
	return 0
}

// Alias returns the value that a facet's value counts as: the value itself if
// it has no alias.
func (s Strategy) Alias(facet, value string) string {
	if to, ok := s.Aliases[facet][value]; ok {
		return to
	}
	return value
}

// Equal reports whether s and o encode to the same JSON. The order of the lists
// matters: the first half-life determines the order of profiles, and customers
// read their lists back in the order in which they set them. Nil equals empty, but
// for the ignored values. Allowed values have no order.
func (s Strategy) Equal(o Strategy) bool {
	a, b := s.withoutEmpty(), o.withoutEmpty()
	return a.PersonalizationImpact == b.PersonalizationImpact &&
		slices.Equal(a.EventsScoring, b.EventsScoring) &&
		slices.Equal(a.FacetsScoring, b.FacetsScoring) &&
		slices.Equal(a.HalfLives, b.HalfLives) &&
		maps.EqualFunc(a.Aliases, b.Aliases, maps.Equal) &&
		sameIgnored(a, b) &&
		maps.EqualFunc(a.AllowedValues, b.AllowedValues, maps.Equal) &&
		a.Ranking.Equal(b.Ranking) &&
		maps.EqualFunc(a.Placements, b.Placements, (*Ranking).Equal)
}

// SameScoring reports whether s and o give every user the same scores under the
// same names of half-lives. The impact and the rankings do not matter.
func (s Strategy) SameScoring(o Strategy) bool {
	s.PersonalizationImpact, s.Ranking, s.Placements = o.PersonalizationImpact, o.Ranking, o.Placements
	return s.Equal(o)
}

// MarshalJSON always writes Algolia's three keys, with empty lists as [], and
// writes the optional keys only if they are not empty. Equal strategies
// encode to equal bytes.
func (s Strategy) MarshalJSON() ([]byte, error) {
	type plain Strategy // without this method
	return json.Marshal(plain(s.withoutEmpty()))
}

// withoutEmpty returns s with its two lists not nil, and without empty
// half-lives, aliases, lists of allowed values, ranking or placements.
func (s Strategy) withoutEmpty() Strategy {
	if s.EventsScoring == nil {
		s.EventsScoring = []EventScore{}
	}
	if s.FacetsScoring == nil {
		s.FacetsScoring = []FacetScore{}
	}
	if len(s.HalfLives) == 0 {
		s.HalfLives = nil
	}
	aliases := make(map[string]map[string]string, len(s.Aliases))
	for facet, pairs := range s.Aliases {
		if len(pairs) > 0 {
			aliases[facet] = pairs
		}
	}
	s.Aliases = aliases
	if len(aliases) == 0 {
		s.Aliases = nil
	}
	allowed := maps.Clone(s.AllowedValues)
	maps.DeleteFunc(allowed, func(_ string, values ValueSet) bool { return len(values) == 0 })
	if s.AllowedValues = allowed; len(allowed) == 0 {
		s.AllowedValues = nil
	}
	s.Ranking = s.Ranking.withoutEmpty()
	placements := make(map[string]*Ranking, len(s.Placements))
	for name, r := range s.Placements {
		if placements[name] = r.withoutEmpty(); r != nil && placements[name] == nil {
			placements[name] = &Ranking{}
		}
	}
	if s.Placements = placements; len(placements) == 0 {
		s.Placements = nil
	}
	return s
}
