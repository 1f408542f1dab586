package boost_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// timesImpact are weights times impact / 100, in exact decimals.
func timesImpact(weights []float64, impact int) []string {
	var digits []string
	for _, w := range weights {
		exact, _ := new(big.Rat).SetString(strconv.FormatFloat(w, 'f', -1, 64))
		exact.Mul(exact, big.NewRat(int64(impact), 100))
		digits = append(digits, plain(exact.FloatString(8)))
	}
	return digits
}

// asTheyAre are the digits of weights.
func asTheyAre(weights []float64, _ int) []string { return timesImpact(weights, 100) }

// millionths are weights as whole numbers.
func millionths(weights []float64, _ int) []string {
	var digits []string
	for _, w := range weights {
		digits = append(digits, strconv.Itoa(int(math.Round(w*1e6))))
	}
	return digits
}

// noDigits: sentences have no numbers.
func noDigits(weights []float64, _ int) []string { return make([]string, len(weights)) }

// plain takes zeros off the end of a decimal number.
func plain(digits string) string {
	if strings.Contains(digits, ".") {
		digits = strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
	}
	return digits
}

// number returns the digits of a number of JSON.
func number(n json.Number) string {
	exact, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return "not a number: " + n.String()
	}
	return plain(exact.FloatString(12))
}

// scoresByLevel are ceil(L x weight / highest), L = round(20 x impact / 100).
func scoresByLevel(weights []float64, impact int) []string {
	levels := math.Max(1, math.Round(20*float64(impact)/100))
	var digits []string
	for _, w := range weights {
		digits = append(digits, strconv.Itoa(max(1, int(math.Ceil(levels*(w-1e-6)/weights[0]-1e-9)))))
	}
	return digits
}

func readOptionalFilters(query []byte) ([]filter, error) {
	var q struct {
		OptionalFilters    [][]string `json:"optionalFilters"`
		SumOrFiltersScores bool       `json:"sumOrFiltersScores"`
	}
	if err := strict(query, &q); err != nil {
		return nil, err
	}
	if len(q.OptionalFilters) != 1 || !q.SumOrFiltersScores {
		return nil, fmt.Errorf("not one OR group whose scores are summed")
	}
	return readScoredFilters(q.OptionalFilters[0])
}

func readPersonalizationFilters(query []byte) ([]filter, error) {
	var q struct {
		Enable  bool     `json:"enablePersonalization"`
		Impact  int      `json:"personalizationImpact"`
		Filters []string `json:"personalizationFilters"`
	}
	if err := strict(query, &q); err != nil {
		return nil, err
	}
	if !q.Enable || q.Impact < 1 || q.Impact > 100 {
		return nil, fmt.Errorf("enabled %v with impact %d", q.Enable, q.Impact)
	}
	return readScoredFilters(q.Filters)
}

var scored = regexp.MustCompile(`(?s)^(.*)<score=(\d+)>$`)

// readScoredFilters reads the score from the end and the attribute from the
// start. A minus is a negation, unless a backslash precedes it. What precedes
// the score is not a score itself.
func readScoredFilters(filters []string) ([]filter, error) {
	var read []filter
	for _, f := range filters {
		m := scored.FindStringSubmatch(f)
		if m == nil || scored.MatchString(m[1]) {
			return nil, fmt.Errorf("%q does not end in one score", f)
		}
		attribute, value, ok := strings.Cut(m[1], ":")
		if !ok || attribute == "" || value == "" || strings.HasPrefix(attribute, "-") || strings.HasPrefix(value, "-") {
			return nil, fmt.Errorf("%q is not attribute:value", f)
		}
		if strings.HasPrefix(value, `\-`) {
			value = value[1:]
		}
		read = append(read, filter{attribute, value, m[2]})
	}
	return read, nil
}

type functionScore struct {
	Functions []struct {
		Filter *struct {
			Term map[string]string `json:"term"`
		} `json:"filter"`
		Weight json.Number `json:"weight"`
	} `json:"functions"`
	ScoreMode string  `json:"score_mode"`
	BoostMode string  `json:"boost_mode"`
	MaxBoost  float64 `json:"max_boost"`
}

func (q functionScore) read(boostMode string) ([]filter, error) {
	if q.ScoreMode != "sum" || q.BoostMode != boostMode || q.MaxBoost <= 1 || q.MaxBoost > 2 {
		return nil, fmt.Errorf("modes %s, %s, at most %g", q.ScoreMode, q.BoostMode, q.MaxBoost)
	}
	if len(q.Functions) == 0 || q.Functions[0].Filter != nil || q.Functions[0].Weight != "1" {
		return nil, fmt.Errorf("the base is not 1")
	}
	var read []filter
	for _, f := range q.Functions[1:] {
		if f.Filter == nil {
			return nil, fmt.Errorf("a second function without a filter")
		}
		field, value, err := only(f.Filter.Term)
		if err != nil {
			return nil, err
		}
		read = append(read, filter{field, value, number(f.Weight)})
	}
	return read, nil
}

func readFunctionScore(query []byte) ([]filter, error) {
	var q struct {
		Query struct {
			FunctionScore functionScore `json:"function_score"`
		} `json:"query"`
	}
	if err := strict(query, &q); err != nil {
		return nil, err
	}
	return q.Query.FunctionScore.read("multiply")
}

func readRescore(query []byte) ([]filter, error) {
	var q struct {
		Rescore struct {
			WindowSize int `json:"window_size"`
			Query      struct {
				RescoreQuery struct {
					FunctionScore functionScore `json:"function_score"`
				} `json:"rescore_query"`
				QueryWeight        float64 `json:"query_weight"`
				RescoreQueryWeight float64 `json:"rescore_query_weight"`
				ScoreMode          string  `json:"score_mode"`
			} `json:"query"`
		} `json:"rescore"`
	}
	if err := strict(query, &q); err != nil {
		return nil, err
	}
	r := q.Rescore
	if r.WindowSize != 200 || r.Query.ScoreMode != "multiply" || r.Query.QueryWeight != 1 || r.Query.RescoreQueryWeight != 1 {
		return nil, fmt.Errorf("rescore %+v", r)
	}
	return r.Query.RescoreQuery.FunctionScore.read("replace")
}

func readRankFeature(query []byte) ([]filter, error) {
	var q struct {
		Query struct {
			Bool struct {
				Should []struct {
					RankFeature struct {
						Field  string      `json:"field"`
						Linear *struct{}   `json:"linear"`
						Boost  json.Number `json:"boost"`
					} `json:"rank_feature"`
				} `json:"should"`
			} `json:"bool"`
		} `json:"query"`
	}
	if err := strict(query, &q); err != nil {
		return nil, err
	}
	var read []filter
	for _, clause := range q.Query.Bool.Should {
		f := clause.RankFeature
		dot := strings.LastIndex(f.Field, ".") // the engine's way to the parent field
		if dot < 0 || f.Field[:dot] != "affinity" || f.Linear == nil {
			return nil, fmt.Errorf("%q is not a feature of affinity", f.Field)
		}
		field, value, ok := strings.Cut(f.Field[dot+1:], ":")
		if !ok {
			return nil, fmt.Errorf("%q is not a filter", f.Field)
		}
		read = append(read, filter{field, value, number(f.Boost)})
	}
	return read, nil
}
