package rank

import (
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/serve/ranker"
)

// render returns the answer without its id and its time.
func render(a ranker.Answer, explain bool) api.RankAnswer {
	view := api.RankAnswer{StrategyVersion: a.StrategyVersion, Items: make([]api.RankedItem, len(a.Items))}
	if a.ScoringVersion != a.StrategyVersion {
		view.ScoringVersion = a.ScoringVersion
	}
	if a.CrowdAsOf != 0 {
		asOf := api.AtMillis(a.CrowdAsOf)
		view.CrowdAsOf = &asOf
	}
	if a.Fallback != "" {
		view.Fallback = &a.Fallback
	}
	for i, item := range a.Items {
		view.Items[i] = api.RankedItem{ObjectID: item.ObjectID, Score: item.Score}
		if explain {
			view.Items[i].Features = features(item.Features)
		}
	}
	return view
}

// features is never nil.
func features(all []ranking.Feature) []api.RankFeature {
	views := make([]api.RankFeature, len(all))
	for i, f := range all {
		views[i] = api.RankFeature{Name: f.Name, Value: f.Value}
		for _, p := range f.Parts {
			views[i].Parts = append(views[i].Parts, api.RankPart(p))
		}
	}
	return views
}
