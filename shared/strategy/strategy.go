// Package strategy holds what an app sets to say which behaviour counts: points per event, weight per facet, and
// optionally the half-lives under which scores decay and the aliases under which values merge. It is separate from
// scoring because it is what people write, store and read back, in the words and the JSON of Algolia's
// Personalization API; scoring compiles it into something faster. Its strict decoder lives here too, so that a
// misspelt key is refused when it is sent rather than found in wrong profiles. Strategies are kept, version by
// version, by the config package; nothing here does I/O.
package strategy

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/event"
)

// EventScore gives points to the events of one type and name. Both must match.
type EventScore struct {
	EventName string     `json:"eventName"`
	EventType event.Type `json:"eventType"`
	Score     int        `json:"score"` // 0 to MaxScore; 0 scores nothing
}

// FacetScore gives a weight to one facet.
type FacetScore struct {
	FacetName string `json:"facetName"`
	Score     int    `json:"score"` // 0 to MaxScore; 0 scores nothing
}

// Strategy says which events and facets score, and how scores age. The zero value is valid and scores nothing.
// Strategies are values: nothing changes one in place, so copies may share their lists and maps.
type Strategy struct {
	EventsScoring []EventScore `json:"eventsScoring"`
	FacetsScoring []FacetScore `json:"facetsScoring"`

	// PersonalizationImpact is 0 to MaxImpact. Search engines read it back; scoring does not use it.
	PersonalizationImpact int `json:"personalizationImpact"`

	// HalfLives are whole days, each giving every affinity one score of its own; the first is the one that
	// ranks. With none of them a score is the plain sum, which never ages within the retention.
	HalfLives []int `json:"halfLives,omitempty"`

	// Aliases merge values when scoring: facet -> value as sent -> value it counts as. One step only.
	Aliases map[string]map[string]string `json:"aliases,omitempty"`
}

// EventScore returns the points of an event of this type and name: 0 where the strategy does not name it.
func (s Strategy) EventScore(typ event.Type, name string) int {
	for _, e := range s.EventsScoring {
		if e.EventType == typ && e.EventName == name {
			return e.Score
		}
	}
	return 0
}

// FacetScore returns the weight of a facet: 0 where the strategy does not name it.
func (s Strategy) FacetScore(facet string) int {
	for _, f := range s.FacetsScoring {
		if f.FacetName == facet {
			return f.Score
		}
	}
	return 0
}

// Alias returns the value that a facet's value counts as: itself where the strategy has no alias for it.
func (s Strategy) Alias(facet, value string) string {
	if to, ok := s.Aliases[facet][value]; ok {
		return to
	}
	return value
}

// Equal reports whether o would be read back exactly as s. The order of the lists counts: the first half-life is
// the one that ranks, and a customer who reorders his lists gets them back as he set them. Nil and empty are the same.
func (s Strategy) Equal(o Strategy) bool {
	a, b := s.withoutEmpty(), o.withoutEmpty()
	return a.PersonalizationImpact == b.PersonalizationImpact &&
		slices.Equal(a.EventsScoring, b.EventsScoring) &&
		slices.Equal(a.FacetsScoring, b.FacetsScoring) &&
		slices.Equal(a.HalfLives, b.HalfLives) &&
		maps.EqualFunc(a.Aliases, b.Aliases, maps.Equal)
}

// MarshalJSON writes Algolia's three keys always, lists as [] rather than null, and the two optional keys only
// where they say something. Equal strategies give equal bytes.
func (s Strategy) MarshalJSON() ([]byte, error) {
	type plain Strategy // without this method
	return json.Marshal(plain(s.withoutEmpty()))
}

// withoutEmpty returns s with its two lists never nil, and without half-lives or aliases that hold nothing.
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
	return s
}
