package suggest

import "github.com/affinityengine/affinity/shared/api"

// API returns the suggestion as an answer has it, without the bands, which are by index.
func (s Suggestion) API() api.StrategySuggestion {
	answer := api.StrategySuggestion{Strategy: s.Strategy, Reasons: make([]api.SuggestionReason, len(s.Reasons))}
	for i, r := range s.Reasons {
		answer.Reasons[i] = api.SuggestionReason{Score: r.Score, Reason: r.Text}
		if r.Type == "" {
			answer.Reasons[i].FacetName = r.Name
		} else {
			answer.Reasons[i].EventType, answer.Reasons[i].EventName = string(r.Type), r.Name
		}
	}
	return answer
}
