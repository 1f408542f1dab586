package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// function is one entry of functions: a weight, and the filter of the documents
// that it holds for. Without a filter it holds for all.
type function struct {
	Filter *struct {
		Term map[string]json.RawMessage `json:"term"`
	} `json:"filter"`
	Weight *float64 `json:"weight"`
}

// FunctionScore orders documents by a function_score of Elasticsearch and
// OpenSearch, {"function_score":{...}}, whose own query found the documents with
// the score Text. Its functions are weights with filters on terms.
// https://www.elastic.co/docs/reference/query-languages/query-dsl/query-dsl-function-score-query
func FunctionScore(docs []Document, query []byte) ([]Hit, error) {
	var q struct {
		FunctionScore *struct {
			Query     json.RawMessage `json:"query"`
			Functions []function      `json:"functions"`
			ScoreMode string          `json:"score_mode"`
			BoostMode string          `json:"boost_mode"`
			MaxBoost  *float64        `json:"max_boost"`
		} `json:"function_score"`
	}
	if err := decode(query, &q); err != nil {
		return nil, err
	}
	if q.FunctionScore == nil {
		return nil, errors.New("the query has no function_score")
	}
	limit := math.MaxFloat32
	if q.FunctionScore.MaxBoost != nil {
		limit = *q.FunctionScore.MaxBoost
	}
	rows := make([]row, len(docs))
	for i, d := range docs {
		factor, err := combine(d, q.FunctionScore.Functions, q.FunctionScore.ScoreMode)
		if err != nil {
			return nil, err
		}
		score := min(factor, limit)
		switch q.FunctionScore.BoostMode {
		case "", "multiply":
			score *= d.Text
		case "sum":
			score += d.Text
		case "replace":
		default:
			return nil, fmt.Errorf("boost_mode %q is not known", q.FunctionScore.BoostMode)
		}
		rows[i] = row{Hit{d.ID, score}, []float64{score}}
	}
	return order(rows), nil
}

// combine returns what the functions say of a document together; 1 if none holds.
func combine(d Document, functions []function, mode string) (float64, error) {
	sum, product, n := 0.0, 1.0, 0
	for _, f := range functions {
		if f.Weight == nil || *f.Weight < 0 {
			return 0, errors.New("a function has no weight, or one below 0")
		}
		holds, err := f.holds(d)
		if err != nil {
			return 0, err
		}
		if holds {
			sum, product, n = sum+*f.Weight, product**f.Weight, n+1
		}
	}
	switch {
	case n == 0:
		return 1, nil
	case mode == "sum":
		return sum, nil
	case mode == "" || mode == "multiply":
		return product, nil
	}
	return 0, fmt.Errorf("score_mode %q is not known", mode)
}

func (f function) holds(d Document) (bool, error) {
	if f.Filter == nil {
		return true, nil
	}
	if len(f.Filter.Term) != 1 {
		return false, fmt.Errorf("a filter on terms has %d fields, not 1", len(f.Filter.Term))
	}
	for field, raw := range f.Filter.Term {
		var value string
		if json.Unmarshal(raw, &value) != nil {
			var long struct {
				Value *string `json:"value"`
			}
			if err := decode(raw, &long); err != nil || long.Value == nil {
				return false, fmt.Errorf("the term of %s is %s, not a string", field, raw)
			}
			value = *long.Value
		}
		return d.has(field, value, exactly), nil
	}
	return false, nil
}
