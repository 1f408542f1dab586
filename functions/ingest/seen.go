package ingest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// seen answers what the events of the last days contained, whether the strategy scores it
// or not.
func (h handler) seen(w http.ResponseWriter, r *http.Request, app string) error {
	days, err := httpapi.CountOption(r, "days", api.DefaultSeenDays, api.MaxSeenDays)
	if err != nil {
		return err
	}
	now := h.Now()
	today := usage.DayOf(now)
	names, err := h.Store.Usage.Names(r.Context(), app, today-usage.Day(days)+1, today)
	if err != nil {
		return fmt.Errorf("read what events contained: %w", err)
	}
	answer := api.SeenEvents{Days: days, AsOf: api.At(now), Events: seenEvents(names), Facets: seenFacets(names),
		Nobody: seenNobody(names), Truncated: names.Left > 0}
	if len(answer.Events) > api.MaxSeen {
		answer.Events, answer.Truncated = answer.Events[:api.MaxSeen], true
	}
	if len(answer.Facets) > api.MaxSeen {
		answer.Facets, answer.Truncated = answer.Facets[:api.MaxSeen], true
	}
	if len(answer.Nobody) > api.MaxSeen {
		answer.Nobody, answer.Truncated = answer.Nobody[:api.MaxSeen], true
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func seenEvents(names usage.Names) []api.SeenEvent {
	events := make([]api.SeenEvent, 0, len(names.Events))
	for kind, n := range names.Events {
		events = append(events, api.SeenEvent{EventType: kind.Type, EventName: kind.Name, Count: n})
	}
	slices.SortFunc(events, func(a, b api.SeenEvent) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.EventType, b.EventType),
			cmp.Compare(a.EventName, b.EventName))
	})
	return events
}

func seenFacets(names usage.Names) []api.SeenFacet {
	facets := make([]api.SeenFacet, 0, len(names.Facets))
	for facet, n := range names.Facets {
		facets = append(facets, api.SeenFacet{Facet: facet, Count: n})
	}
	slices.SortFunc(facets, func(a, b api.SeenFacet) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Facet, b.Facet))
	})
	return facets
}

func seenNobody(names usage.Names) (tokens []api.SeenToken) {
	for token, n := range names.Nobody {
		tokens = append(tokens, api.SeenToken{UserToken: token, Count: n})
	}
	slices.SortFunc(tokens, func(a, b api.SeenToken) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.UserToken, b.UserToken))
	})
	return tokens
}
