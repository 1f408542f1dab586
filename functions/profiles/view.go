package profiles

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/profile"
)

// render returns the answer for a profile, with at most limit affinities. days
// is the half-life that scores and sorts them; 0 is the strategy's first.
func render(user string, r profile.Result, limit, days int) (api.Profile, error) {
	at := 0
	if days != 0 {
		if at = slices.Index(r.HalfLives, days); at < 0 {
			return api.Profile{}, httpapi.Errorf(http.StatusUnprocessableEntity,
				"halfLife must be one of the strategy's halfLives: %s", listDays(r.HalfLives))
		}
	}
	if at > 0 {
		slices.SortStableFunc(r.Affinities, func(a, b affinity.Affinity) int {
			switch {
			case a.Scores[at] > b.Scores[at]:
				return -1
			case a.Scores[at] < b.Scores[at]:
				return 1
			}
			return strings.Compare(a.Facet+"\x00"+a.Value, b.Facet+"\x00"+b.Value)
		})
	}
	list := r.Affinities[:min(limit, len(r.Affinities))]
	view := api.Profile{
		UserToken: user, LastEventAt: api.AtMillis(r.LastEventAt), AsOf: api.AtMillis(r.Anchor),
		StrategyVersion: r.StrategyVersion, Source: api.SourceComputed, Total: r.Total,
		Affinities: make([]api.Affinity, len(list)),
	}
	if r.Stored {
		view.Source = api.SourceStored
	}
	for i, a := range list {
		view.Affinities[i] = api.Affinity{Facet: a.Facet, Operator: event.Operator, Value: a.Value,
			Score: a.Scores[at], Scores: byHalfLife(r.HalfLives, a.Scores)}
	}
	return view, nil
}

// listDays names the half-lives of a strategy in a message.
func listDays(days []int) string {
	if len(days) == 0 {
		return "it has none"
	}
	text := make([]string, len(days))
	for i, d := range days {
		text[i] = strconv.Itoa(d)
	}
	return strings.Join(text, ", ")
}
