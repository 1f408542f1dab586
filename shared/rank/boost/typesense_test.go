package boost_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/rank/boost"
)

func sortedBy(t *testing.T, r boost.Request) string {
	t.Helper()
	answer := checkStructure(t, r)
	return answer.Query["sort_by"].(string)
}

// profile has n values of each facet, the first facet's values strongest.
func profile(facets, n int) []boost.Affinity {
	var affinities []boost.Affinity
	for f := range facets {
		for v := range n {
			affinities = append(affinities, boost.Affinity{
				Facet: fmt.Sprint("f", f), Value: fmt.Sprint("v", v), Score: float64(10_000 - 100*v - f),
			})
		}
	}
	return affinities
}

// The impact decides what comes first and in how many buckets.
func TestTypesenseBuckets(t *testing.T) {
	for impact, want := range map[int]string{
		1: "_text_match(buckets:50):desc,_eval([", 25: "_text_match(buckets:50):desc,_eval([",
		38: "_text_match(buckets:20):desc,_eval([", 50: "_text_match(buckets:20):desc,_eval([",
		75: "_text_match(buckets:10):desc,_eval([", 99: "_text_match(buckets:10):desc,_eval([",
		100: "_eval([",
	} {
		r := request("typesense", "", example())
		r.Impact = impact
		if got := sortedBy(t, r); !strings.HasPrefix(got, want) {
			t.Errorf("impact %d: %s, want %s...", impact, got, want)
		}
	}
}

// Three facets of three values make 4 x 4 x 4 - 1 combinations, the most that an
// expression holds. A tenth value stands alone, and others leave combinations
// for it.
func TestTypesenseClauses(t *testing.T) {
	for _, c := range []struct{ facets, values, affinities, clauses int }{
		{1, 1, 1, 1},
		{2, 1, 2, 3},
		{3, 3, 9, 63},
		{1, 32, 32, 32},
		{6, 1, 6, 63},
		{7, 1, 7, 64},   // 2^6 - 1 combinations, and one alone
		{10, 1, 10, 36}, // 2^5 - 1, and five alone: with a sixth there would be 67
		{10, 3, 30, 56}, // 2^5 - 1, and 25 alone
		{10, 4, 32, 58}, // the strongest 32
	} {
		r := request("typesense", "", profile(c.facets, c.values))
		r.Limit = 100
		answer, query := render(t, r)
		if len(answer.Affinities) != c.affinities {
			t.Errorf("%d facets of %d values: %d affinities, want %d", c.facets, c.values, len(answer.Affinities), c.affinities)
		}
		if got := strings.Count(query, "):") - 1 - strings.Count(query, "buckets"); got != c.clauses {
			t.Errorf("%d facets of %d values: %d clauses, want %d", c.facets, c.values, got, c.clauses)
		}
		sortedBy(t, r)
	}
}

// firstMatch is the score that Typesense gives a document with these values.
func firstMatch(t *testing.T, sortBy string, document map[string]string) string {
	t.Helper()
	_, expression, _ := strings.Cut(sortBy, "_eval([")
	for clause := range strings.SplitSeq(strings.TrimSuffix(expression, "]):desc"), ",") {
		conditions, score, _ := strings.Cut(strings.TrimPrefix(clause, "("), "):")
		matches := true
		for condition := range strings.SplitSeq(conditions, " && ") {
			field, value, _ := strings.Cut(strings.Trim(condition, "`"), ":=`")
			matches = matches && document[field] == value
		}
		if matches {
			return score
		}
	}
	return "0"
}

// A document gets the sum of the weights that match, although Typesense adds
// nothing up.
func TestTypesenseFirstMatchIsTheSum(t *testing.T) {
	sortBy := sortedBy(t, request("typesense", "", example()))
	for want, document := range map[string]map[string]string{
		"1000000": {"brand": "Apple", "color": "Black"},
		"611111":  {"brand": "Sony", "color": "Black"},
		"555556":  {"brand": "Apple", "color": "White"},
		"444444":  {"brand": "Nokia", "color": "Black"},
		"166667":  {"brand": "Sony"},
		"0":       {"brand": "Nokia"},
	} {
		if got := firstMatch(t, sortBy, document); got != want {
			t.Errorf("score of %v = %s, want %s", document, got, want)
		}
	}
}
