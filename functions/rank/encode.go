package rank

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/ranking"
)

// encode appends the JSON of an answer to b, and room for a character. An answer
// may have thousands of items, for which package json takes several times as long.
func encode(b []byte, a api.RankAnswer) ([]byte, error) {
	items := a.Items
	a.Items = []api.RankedItem{}
	frame, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	const end = "]}" // items are last
	b = slices.Grow(b, len(frame)+len(items)*typicalItem)
	b = append(b, frame[:len(frame)-len(end)]...)
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"objectID":`...)
		// An objectID is valid UTF-8, so there is no error.
		b, _ = jsontext.AppendQuote(b, item.ObjectID)
		b = append(b, `,"score":`...)
		b = strconv.AppendFloat(b, item.Score, 'g', -1, 64)
		if item.Features != nil {
			features, err := json.Marshal(item.Features)
			if err != nil {
				return nil, fmt.Errorf("encode features of %q: %w", item.ObjectID, err)
			}
			b = append(append(b, `,"features":`...), features...)
		}
		b = append(b, '}')
	}
	return slices.Grow(append(b, end...), 1), nil
}

// encodeOrder appends the JSON of an order without scores to b, and room for a
// character: an api.RankOrder.
func encodeOrder(b []byte, id string, items []ranking.Item) ([]byte, error) {
	frame, err := json.Marshal(api.RankOrder{ID: id, Items: []api.OrderedItem{}})
	if err != nil {
		return nil, fmt.Errorf("encode order: %w", err)
	}
	const end = "]}" // items are last
	b = slices.Grow(b, len(frame)+len(items)*typicalItem)
	b = append(b, frame[:len(frame)-len(end)]...)
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"objectID":`...)
		b, _ = jsontext.AppendQuote(b, item.ObjectID)
		b = append(b, '}')
	}
	return slices.Grow(append(b, end...), 1), nil
}

// typicalItem estimates the size of an item in bytes, to preallocate.
const typicalItem = 64
