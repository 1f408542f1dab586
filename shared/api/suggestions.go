package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// StrategySuggestion is the answer of GET /1/strategies/personalization/suggestion: a first
// strategy by what was seen. Nothing is set.
type StrategySuggestion struct {
	Strategy Strategy `json:"strategy"`
	// NumericBands are, by index, those that its facets of prices need for the strategy: an exact
	// price is not a taste. Absent if none are needed.
	NumericBands map[string]map[string][]float64 `json:"numericBands,omitempty"`
	// Reasons say why of each kind of events and each facet, also of those that are left out.
	Reasons []SuggestionReason `json:"reasons"`
	// Days is how many days in UTC of events were looked at, today included, and Objects how many
	// objects, at most MaxSuggestionObjects.
	Days    int `json:"days"`
	Objects int `json:"objects"`
}

// SuggestionReason says why a kind of events or a facet has a score in a suggestion.
type SuggestionReason struct {
	EventType string `json:"eventType,omitempty"` // of a kind of events, with EventName
	EventName string `json:"eventName,omitempty"`
	FacetName string `json:"facetName,omitempty"` // of a facet
	Score     int    `json:"score"`               // 0: it is left out
	Reason    string `json:"reason"`
}

// Limits of a suggestion.
const (
	// MaxSuggestionObjects is how many objects it looks at, of MaxSuggestionIndexes indexes.
	MaxSuggestionObjects = 2_000
	MaxSuggestionIndexes = 10
)

// BandArguments returns the arguments of affinity index bands for each index that needs numeric
// bands, by index: its name, and then each facet with its numbers, such as price=0,50,100.
func (s StrategySuggestion) BandArguments() (commands [][]string) {
	for _, index := range slices.Sorted(maps.Keys(s.NumericBands)) {
		arguments := []string{index}
		for _, facet := range slices.Sorted(maps.Keys(s.NumericBands[index])) {
			var limits []string
			for _, n := range s.NumericBands[index][facet] {
				limits = append(limits, strconv.FormatFloat(n, 'f', -1, 64))
			}
			arguments = append(arguments, facet+"="+strings.Join(limits, ","))
		}
		if len(arguments) > 1 {
			commands = append(commands, arguments)
		}
	}
	return commands
}
