package simulate

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Limits of Algolia: https://www.algolia.com/doc/guides/scaling/algolia-service-limits
const (
	algoliaFilters  = 1000
	algoliaMaxScore = 65535
)

// scored is one optional filter.
type scored struct {
	facet, value string
	not          bool
	score        float64
}

// Algolia orders documents by the search parameters optionalFilters and
// sumOrFiltersScores: by the score of the filters, then by Text. Algolia ranks by
// typing errors, distance and words before it ranks by filters, so a boost
// moves documents only among those that are equal in these three.
//
// Inner lists are alternatives: their scores are added up with
// sumOrFiltersScores, and otherwise the highest one counts. The groups of
// the outer list are added up.
func Algolia(docs []Document, query []byte) ([]Hit, error) {
	var q struct {
		OptionalFilters    []json.RawMessage `json:"optionalFilters"`
		SumOrFiltersScores bool              `json:"sumOrFiltersScores"`
	}
	if err := decode(query, &q); err != nil {
		return nil, err
	}
	groups, err := algoliaGroups(q.OptionalFilters)
	if err != nil {
		return nil, err
	}
	rows := make([]row, len(docs))
	for i, d := range docs {
		total := 0.0
		for _, group := range groups {
			sum, highest := 0.0, 0.0
			for _, f := range group {
				if d.has(f.facet, f.value, strings.EqualFold) != f.not {
					sum, highest = sum+f.score, max(highest, f.score)
				}
			}
			if q.SumOrFiltersScores {
				total += sum
			} else {
				total += highest
			}
		}
		rows[i] = row{Hit{d.ID, total}, []float64{total, d.Text}}
	}
	return order(rows), nil
}

func algoliaGroups(list []json.RawMessage) ([][]scored, error) {
	var groups [][]scored
	n := 0
	for _, element := range list {
		var one string
		var texts []string
		if json.Unmarshal(element, &one) == nil {
			texts = []string{one}
		} else if err := json.Unmarshal(element, &texts); err != nil {
			return nil, fmt.Errorf("optionalFilters holds %s, which is neither a filter nor a list of filters", element)
		}
		var group []scored
		for _, text := range texts {
			f, err := algoliaFilter(text)
			if err != nil {
				return nil, err
			}
			group = append(group, f)
			n++
		}
		groups = append(groups, group)
	}
	if n > algoliaFilters {
		return nil, fmt.Errorf("%d optional filters, more than %d", n, algoliaFilters)
	}
	return groups, nil
}

// algoliaFilter reads facet:value<score=N>. Without a score it is 1. A value with
// a minus at its start negates the filter, and `\-` stands for a minus.
func algoliaFilter(text string) (scored, error) {
	f := scored{score: 1}
	if rest, ok := strings.CutSuffix(text, ">"); ok {
		if at := strings.LastIndex(rest, "<score="); at >= 0 {
			score, err := strconv.ParseUint(rest[at+len("<score="):], 10, 32)
			if err != nil || score > algoliaMaxScore {
				return f, fmt.Errorf("filter %q: the score is not an integer from 0 to %d", text, algoliaMaxScore)
			}
			f.score, text = float64(score), rest[:at]
		}
	}
	var ok bool
	if f.facet, f.value, ok = strings.Cut(text, ":"); !ok || f.facet == "" {
		return f, fmt.Errorf("filter %q is not facet:value", text)
	}
	if value, ok := strings.CutPrefix(f.value, "-"); ok {
		f.not, f.value = true, value
	} else if strings.HasPrefix(f.value, `\-`) {
		f.value = f.value[1:]
	}
	return f, nil
}
