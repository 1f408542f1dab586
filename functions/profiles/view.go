package profiles

import (
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/strategy"
)

// render returns the answer for a profile, with at most limit affinities, scored
// and sorted by halfLife. The zero value is the strategy's first half-life.
func render(user string, r profile.Result, limit int, halfLife strategy.HalfLife) (api.Profile, error) {
	at, err := strategy.HalfLifeAt(r.HalfLives, halfLife)
	if err != nil {
		return api.Profile{}, err
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
		StrategyVersion: r.App.StrategyVersion, ScoringVersion: scoringVersion(r.App), Source: api.SourceComputed, Total: r.Total,
		Truncated:  r.Truncated(),
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

// scoringVersion returns an app's scoring version if an answer shows it.
func scoringVersion(app config.App) int64 {
	if app.ScoringVersion == app.StrategyVersion {
		return 0
	}
	return app.ScoringVersion
}
