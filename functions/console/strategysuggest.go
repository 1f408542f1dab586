package console

import (
	"errors"
	"math/bits"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/catalog/vocabulary"
	"github.com/affinityengine/affinity/shared/event"
)

// suggestions are values that probably mean the same.
type suggestions struct {
	List []suggestion
	More int
	Why  string // there can be none
}

type suggestion struct {
	Facet, From, To, Reason string
	FromUsers, ToUsers      string
	Packed                  string
}

const (
	// suggestFacets bounds the facets whose values are read, and shownSuggestions what is listed.
	suggestFacets    = 10
	shownSuggestions = 30
)

// suggest looks for values of the draft's facets that probably mean the same, by how they are written.
// The values are those that most users have.
func suggest(v *visit, d draft) *suggestions {
	s := &suggestions{}
	words, users := vocabulary.New(), map[event.Filter]string{}
	entries, _ := d.list("facetsScoring")
	entries = entries[:min(len(entries), suggestFacets)]
	for _, entry := range entries {
		answer, err := v.engine.Segments().Values(v.Context(), entryName(entry), api.MaxValues, 0)
		if err != nil {
			s.Why = whyNoValues(err)
			return s
		}
		for _, value := range answer.Values {
			f := event.Filter{Facet: answer.Facet, Value: value.Value}
			users[f] = value.Users.String()
			for range bits.Len64(uint64(value.Users.N)) + 1 { // more users: the value to keep
				words.Add([]event.Filter{f})
			}
		}
	}
	for _, entry := range entries {
		facet := entryName(entry)
		pairs, _ := d.at("aliases", facet).(map[string]any)
		aliases := map[string]string{}
		for from, to := range pairs {
			aliases[from] = fieldText(to)
		}
		for _, found := range words.Suggest(facet, aliases) {
			if found.Reason.Doubtful() {
				break // they are the last
			}
			if len(s.List) == shownSuggestions {
				s.More++
				continue
			}
			s.List = append(s.List, suggestion{
				Facet: facet, From: found.From, To: found.To, Reason: found.Reason.String(),
				Packed:    pack(facet, found.From, found.To),
				FromUsers: users[event.Filter{Facet: facet, Value: found.From}],
				ToUsers:   users[event.Filter{Facet: facet, Value: found.To}],
			})
		}
	}
	return s
}

func whyNoValues(err error) string {
	refused, ok := errors.AsType[*api.Error](err)
	switch {
	case !ok:
		return "The values cannot be read now."
	case refused.Status == http.StatusConflict:
		return "The engine lists the values of an app whose segments are on. With a file of the catalog, affinity " +
			"strategy suggest-aliases finds values that mean the same."
	}
	return refused.Message
}
