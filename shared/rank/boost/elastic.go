package boost

import "strings"

// Elasticsearch and OpenSearch share these queries. A value is a JSON string in
// each of them, so no value needs an escape.
var elastic = []dialect{
	{"function_score", each(elasticRefuses), functionScore},
	{"rescore", each(elasticRefuses), rescore},
	{"rank_feature", each(rankFeatureRefuses), rankFeature},
}

const (
	// rescoreWindow is how many of each shard's best documents a rescore sees.
	// Ten, the default of the engine, are fewer than a page.
	rescoreWindow = 200
	// rankFeatures is the field of type rank_features.
	rankFeatures = "affinity"
)

type (
	functionScoreQuery struct {
		Functions []function `json:"functions"`
		ScoreMode string     `json:"score_mode"`
		BoostMode string     `json:"boost_mode"`
		MaxBoost  float64    `json:"max_boost"`
	}
	function struct {
		Filter any     `json:"filter,omitempty"`
		Weight float64 `json:"weight"`
	}
	termFilter struct {
		Term map[string]string `json:"term"`
	}
	rangeFilter struct {
		Range map[string]map[string]float64 `json:"range"`
	}
	rescoring struct {
		WindowSize int          `json:"window_size"`
		Query      rescoreQuery `json:"query"`
	}
	rescoreQuery struct {
		RescoreQuery       map[string]any `json:"rescore_query"`
		QueryWeight        float64        `json:"query_weight"`
		RescoreQueryWeight float64        `json:"rescore_query_weight"`
		ScoreMode          string         `json:"score_mode"`
	}
	rankFeatureQuery struct {
		Field  string   `json:"field"`
		Linear struct{} `json:"linear"`
		Boost  float64  `json:"boost"`
	}
)

// functionScore multiplies the score of query.function_score.query, which the
// caller adds, by the factor. The function without a filter is the 1 of the
// factor: without it, a single match of a small weight would bury a document.
func functionScore(terms []term, impact int) map[string]any {
	return map[string]any{"query": map[string]any{"function_score": factor(terms, impact, "multiply")}}
}

// rescore multiplies the scores of each shard's best documents by the factor.
// The inner query matches every document with score 1, which the mode replaces
// by the factor.
func rescore(terms []term, impact int) map[string]any {
	return map[string]any{"rescore": rescoring{WindowSize: rescoreWindow, Query: rescoreQuery{
		RescoreQuery:       map[string]any{"function_score": factor(terms, impact, "replace")},
		QueryWeight:        1,
		RescoreQueryWeight: 1,
		ScoreMode:          "multiply",
	}}}
}

func factor(terms []term, impact int, boostMode string) functionScoreQuery {
	functions := make([]function, 1, len(terms)+1)
	functions[0].Weight = 1
	for _, t := range terms {
		functions = append(functions, function{t.elasticFilter(), t.scaled(impact)})
	}
	return functionScoreQuery{functions, "sum", boostMode, float64(MaxImpact+impact) / MaxImpact}
}

// elasticFilter is the query that matches the documents of a term.
func (t term) elasticFilter() any {
	if t.numbers == nil {
		return termFilter{Term: map[string]string{t.field: t.value}}
	}
	within := map[string]float64{}
	for _, e := range t.numbers.ends() {
		within[elasticEnds[e.compare]] = e.number
	}
	return rangeFilter{Range: map[string]map[string]float64{t.field: within}}
}

var elasticEnds = map[string]string{">=": "gte", "<": "lt"}

// rankFeature adds the weights that match to the score of query.bool.must, which
// the caller adds. A document lists its filters as features of value 1:
// {"affinity": {"brand:Apple": 1}}.
func rankFeature(terms []term, impact int) map[string]any {
	type clause struct {
		RankFeature rankFeatureQuery `json:"rank_feature"`
	}
	should := make([]clause, 0, len(terms))
	for _, t := range terms {
		should = append(should, clause{rankFeatureQuery{
			Field: rankFeatures + "." + t.field + ":" + t.value,
			Boost: t.scaled(impact),
		}})
	}
	return map[string]any{"query": map[string]any{"bool": map[string]any{"should": should}}}
}

func elasticRefuses(t term) string {
	switch {
	case t.field == "":
		return "without a field name"
	case t.typeless():
		return textOfNumbers
	}
	return ""
}

// rankFeatureRefuses knows that Elasticsearch takes the last dot of the name as
// the end of the field, and so refuses documents whose features have dots. The
// first colon ends the field's name.
func rankFeatureRefuses(t term) string {
	switch {
	case t.field == "":
		return "without a field name"
	case t.numbers != nil:
		return "a band of numbers, and a feature has one name: documents would have to name their bands"
	case strings.Contains(t.field, ":"):
		return "a field name with a colon: the name of the feature would be ambiguous"
	case strings.Contains(t.field, ".") || strings.Contains(t.value, "."):
		return "names of features cannot contain a dot"
	}
	return ""
}
