package console

import (
	"encoding/json"
	"fmt"

	"github.com/affinityengine/affinity/shared/api"
)

// beginning is a suggested strategy, with the reason of each score.
type beginning struct {
	Events, Facets []api.SuggestionReason
	Days, Objects  int
	Bands          []string // commands that give indexes the numeric bands that the strategy needs
	Why            string   // nothing can be suggested
}

// begin asks the engine for a first strategy. The draft is none if it has no suggestion.
func begin(v *visit) (*beginning, draft, error) {
	s, err := v.engine.Strategies().Suggestion(v.Context(), 0)
	if refused, ok := asRefusal(err); ok {
		return &beginning{Why: capitalized(refused.Message) + "."}, draft{}, nil
	}
	if err != nil {
		return nil, draft{}, err
	}
	b := &beginning{Days: s.Days, Objects: s.Objects}
	for _, r := range s.Reasons {
		if r.EventType != "" {
			b.Events = append(b.Events, r)
		} else {
			b.Facets = append(b.Facets, r)
		}
	}
	for _, arguments := range s.BandArguments() {
		line := "affinity index bands"
		for _, argument := range arguments {
			line += " " + shellArg(argument)
		}
		b.Bands = append(b.Bands, line)
	}
	text, err := json.Marshal(s.Strategy)
	if err != nil {
		return nil, draft{}, fmt.Errorf("encode the suggested strategy: %w", err)
	}
	d, err := parseDraft(string(text))
	return b, d, err
}
