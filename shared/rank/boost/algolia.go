package boost

import (
	"regexp"
	"strconv"
	"strings"
)

// scoreRange is the highest score of a filter: that of Algolia's own profiles.
const scoreRange = 20

// optionalFilters ranks documents by the sum of the scores of the filters that
// match. One OR group makes Algolia add them up. Algolia's ranking is
// lexicographic: a higher sum wins over every later criterion, whatever the
// scores are. So the impact is the number of levels that scores have.
func optionalFilters(terms []term, impact int) map[string]any {
	levels := max(1, (scoreRange*impact+MaxImpact/2)/MaxImpact)
	return map[string]any{
		"optionalFilters":    [][]string{scoredFilters(terms, levels)},
		"sumOrFiltersScores": true,
	}
}

// personalizationFilters gives Algolia's own personalization the affinities in
// place of the profile that it stores. Algolia does not document the parameter,
// and its plan must include personalization.
func personalizationFilters(terms []term, impact int) map[string]any {
	return map[string]any{
		"enablePersonalization":  true,
		"personalizationImpact":  impact,
		"personalizationFilters": scoredFilters(terms, scoreRange),
	}
}

// scoredFilters returns facet:value<score=N>, N from 1 to levels. Algolia reads
// the score from the end and the facet up to the first colon.
func scoredFilters(terms []term, levels int) []string {
	highest := terms[0].weight
	filters := make([]string, 0, len(terms))
	for _, t := range terms {
		value := t.value
		if strings.HasPrefix(value, "-") { // it would mean: without this value
			value = `\` + value
		}
		// Rounded up, but not because of the last digit of a weight.
		score := max(1, (levels*(t.weight-1)+highest-1)/highest)
		filters = append(filters, t.field+":"+value+"<score="+strconv.Itoa(score)+">")
	}
	return filters
}

// scoreLike matches what Algolia may read as the score of a filter.
var scoreLike = regexp.MustCompile(`(?i)<score=`)

// negation matches what Algolia may read as one after it trims a value, or as
// its escape.
var negation = regexp.MustCompile(`^\s*\\-|^\s+-`)

// algoliaRefuses returns a judge that also knows the filters so far: Algolia
// compares values without regard to case, so that two spellings would count
// twice.
func algoliaRefuses(Request) func(term) string {
	spellings := make(map[string]bool)
	return func(t term) string {
		spelling := t.field + ":" + strings.ToLower(t.value)
		switch {
		case t.numbers != nil:
			return "a band of numbers, and these filters compare no numbers"
		case t.field == "" || strings.TrimSpace(t.value) == "":
			return "a filter needs a field and a value"
		case strings.Contains(t.field, ":"):
			return "a field name with a colon has no escape"
		case strings.HasPrefix(t.field, "-"):
			return "a field name that begins with - has no escape"
		case negation.MatchString(t.value):
			return `a value that begins with \- or with white space and - has no escape`
		case scoreLike.MatchString(t.field) || scoreLike.MatchString(t.value):
			return "<score= has no escape"
		case spellings[spelling]:
			return "Algolia ignores case, and a stronger affinity differs only by it"
		}
		spellings[spelling] = true
		return ""
	}
}
