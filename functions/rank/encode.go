package rank

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/rank/ranking"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/serve/ranker"
)

// encode appends the JSON of an answer to b, and room for a character.
func encode(b []byte, a api.RankAnswer) ([]byte, error) {
	items := a.Items
	a.Items = []api.RankedItem{}
	return fillFrame(b, a, len(items), func(b []byte, i int) ([]byte, error) {
		item := &items[i]
		b = appendObjectID(b, item.ObjectID)
		b = append(b, `,"score":`...)
		b = strconv.AppendFloat(b, item.Score, 'g', -1, 64)
		if item.Features != nil {
			features, err := json.Marshal(item.Features)
			if err != nil {
				return nil, fmt.Errorf("encode features of %q: %w", item.ObjectID, err)
			}
			b = append(append(b, `,"features":`...), features...)
		}
		return b, nil
	})
}

// encodeOrder appends the JSON of an order without scores to b, and room for a
// character: an api.RankOrder.
func encodeOrder(b []byte, id string, items []ranking.Item) ([]byte, error) {
	order := api.RankOrder{ID: id, Items: []api.OrderedItem{}}
	return fillFrame(b, order, len(items), func(b []byte, i int) ([]byte, error) {
		return appendObjectID(b, items[i].ObjectID), nil
	})
}

// fillFrame appends the JSON of an answer to b, with n items in place of the empty
// list at its end, and room for a character. item appends the keys of one. An answer
// may have thousands of items, for which package json takes several times as long.
func fillFrame(b []byte, answer any, n int, item func(b []byte, i int) ([]byte, error)) ([]byte, error) {
	frame, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	const end = "]}" // items are last
	b = slices.Grow(b, len(frame)+n*typicalItem)
	b = append(b, frame[:len(frame)-len(end)]...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = item(append(b, '{'), i); err != nil {
			return nil, err
		}
		b = append(b, '}')
	}
	return slices.Grow(append(b, end...), 1), nil
}

// appendObjectID appends the key objectID. An objectID is valid UTF-8, so there is no
// error.
func appendObjectID(b []byte, id string) []byte {
	b, _ = jsontext.AppendQuote(append(b, `"objectID":`...), id)
	return b
}

// typicalItem estimates the size of an item in bytes, to preallocate.
const typicalItem = 64

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
	view.Person, view.Experiment = a.Person, inArm(a.Assigned)
	for i, item := range a.Items {
		view.Items[i] = api.RankedItem{ObjectID: item.ObjectID, Score: item.Score}
		if explain {
			view.Items[i].Features = features(item.Features)
		}
	}
	return view
}

// inArm returns the arm of a user as answers have it; nil: none.
func inArm(in experiment.Assignment) *api.InArm {
	if in.Arm == "" {
		return nil
	}
	return &api.InArm{Name: in.Experiment, Arm: in.Arm}
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
