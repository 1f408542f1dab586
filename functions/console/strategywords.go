package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/shared/score/strategy"
)

// halfLivesWords says what the half-lives of a strategy do.
func halfLivesWords(all []strategy.HalfLife) string {
	switch len(all) {
	case 0:
		return "Events keep their worth for the whole retention."
	case 1:
		return "A view is worth half after " + span(all[0].String()) + ", and so is every other event."
	}
	rest := make([]string, len(all)-1)
	for i, h := range all[1:] {
		rest[i] = span(h.String())
	}
	return "A view is worth half after " + span(all[0].String()) +
		": this first half-life orders profiles. Each profile also has scores for " + strings.Join(rest, ", ") + "."
}

// changeWords says each difference between two strategies in a sentence.
func changeWords(before, after strategy.Strategy) []string {
	changes := strategy.Diff(before, after)
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = changeSentence(c)
	}
	return words
}

func changeSentence(c strategy.Change) string {
	switch c.Key {
	case "eventsScoring":
		return scoreSentence(fmt.Sprintf("%s “%s”", capitalized(c.Of[0]), shown(c.Of[1])), "counts", c)
	case "facetsScoring":
		return scoreSentence("Facet "+shown(c.Of[0]), "weighs", c)
	case "aliases":
		value := fmt.Sprintf("%s “%s”", shown(c.Of[0]), shown(c.Of[1]))
		switch {
		case c.Before == nil:
			return fmt.Sprintf("%s counts as “%s”", value, valueWords(c.After))
		case c.After == nil:
			return fmt.Sprintf("%s counts for itself, not as “%s”", value, valueWords(c.Before))
		}
		return fmt.Sprintf("%s counts as “%s” instead of “%s”", value, valueWords(c.After), valueWords(c.Before))
	case "allowedValues":
		facet := "Facet " + shown(c.Of[0])
		switch {
		case c.After == nil:
			return facet + " scores all values again"
		case c.Before == nil:
			return facet + " scores no values but " + valueWords(c.After)
		}
		return fmt.Sprintf("%s scores no values but %s, instead of %s", facet, valueWords(c.After), valueWords(c.Before))
	case "eventsScoring.order":
		return "The events are in another order"
	case "facetsScoring.order":
		return "The facets are in another order"
	}
	none := "the default"
	if c.Key == "halfLives" {
		none = "none"
	}
	words := func(v any) string {
		if v == nil {
			return none
		}
		return valueWords(v)
	}
	return fmt.Sprintf("%s: %s → %s", keyWords(c.Key), words(c.Before), words(c.After))
}

// scoreSentence says how the score of an event or a facet changes.
func scoreSentence(what, verb string, c strategy.Change) string {
	switch {
	case c.Before == nil:
		return fmt.Sprintf("%s %s %v; it did not count before", what, verb, c.After)
	case c.After == nil:
		return fmt.Sprintf("%s no longer counts; it had %v", what, c.Before)
	}
	return fmt.Sprintf("%s: %v → %v", what, c.Before, c.After)
}

// keyWords name the keys of a strategy that have one value.
func keyWords(key string) string {
	names := map[string]string{
		"personalizationImpact": "Impact", "halfLives": "Half-lives",
		"ignoredValues": "Ignored values", "ranking.contrast": "Contrast",
		"ranking.session.weight": "Weight of the session", "ranking.session.halfLife": "Half-life of the session",
		"ranking.popularity.weight": "Weight of popularity", "ranking.popularity.halfLife": "Half-life of popularity",
		"ranking.pairs.weight": "Weight of pairs", "ranking.sequence.weight": "Weight of sequences",
		"ranking.neighbours.weight": "Weight of neighbours", "ranking.freshness.weight": "Weight of freshness",
		"ranking.freshness.halfLife": "Half-life of freshness", "ranking.freshness.attribute": "Attribute of freshness",
	}
	if name, ok := names[key]; ok {
		return name
	}
	return key
}

func valueWords(v any) string {
	switch v := v.(type) {
	case strategy.HalfLife:
		if _, events := v.Events(); events {
			return v.String()
		}
		return span(v.String())
	case []strategy.HalfLife:
		words := make([]string, len(v))
		for i, h := range v {
			words[i] = span(h.String())
		}
		return strings.Join(words, ", ")
	case []string:
		return listWords(v)
	}
	return shown(fmt.Sprint(v))
}

// silentWords say which values score nothing under a strategy.
func silentWords(s strategy.Strategy) []string {
	words := []string{"Ignored in every facet: " + listWords(s.IgnoredOrDefault())}
	if s.IgnoredValues == nil {
		words[0] += ", the default"
	}
	for _, facet := range slices.Sorted(maps.Keys(s.AllowedValues)) {
		words = append(words, fmt.Sprintf("Facet %s scores no values but %s", shown(facet),
			listWords(slices.Sorted(maps.Keys(s.AllowedValues[facet])))))
	}
	return words
}

// shownValues is how many values of a list a sentence names.
const shownValues = 5

func listWords(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	words := make([]string, min(len(values), shownValues))
	for i := range words {
		words[i] = "“" + shown(values[i]) + "”"
	}
	text := strings.Join(words, ", ")
	if more := len(values) - len(words); more > 0 {
		text += fmt.Sprintf(" and %s more", number(more))
	}
	return text
}

func capitalized(word string) string {
	if word == "" {
		return word
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// effectWords says what happens when a strategy replaces another.
func effectWords(before, after strategy.Strategy) string {
	switch {
	case before.Equal(after):
		return "Nothing changes: it is the active strategy."
	case before.SameScoring(after):
		return "Every read uses it within five seconds. No profile is recomputed: only the ranking or the impact " +
			"changes, and scores stay."
	}
	return "Every read uses it within five seconds. Stored profiles are recomputed in the background."
}

// tauWords says how alike two orders are.
func tauWords(tau float64) string {
	switch {
	case tau >= 0.995:
		return "the same order"
	case tau >= 0.9:
		return "almost the same order"
	case tau >= 0.7:
		return "a similar order"
	case tau >= 0.4:
		return "a clearly different order"
	case tau >= 0.1:
		return "an order with little in common"
	case tau > -0.1:
		return "an unrelated order"
	}
	return "an order turned around"
}
