package console

import (
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
)

// wordPart is a part of a sentence: words of the console, or a text from outside.
type wordPart struct {
	Text    string
	Outside bool
}

const (
	// wordsFilters is how many filters of a condition a line names, and wordsLength how many
	// characters of each.
	wordsFilters = 3
	wordsLength  = 32
)

// condWords writes a condition as a part of a sentence: users who like ….
type condWords struct {
	parts  []wordPart
	most   int // filters that are named
	length int // characters of each
	named  int
	more   int
}

func (w *condWords) say(text string) { w.parts = append(w.parts, wordPart{Text: text}) }

// conditionWords says a condition whole, and shortWords in a line.
func conditionWords(c api.SegmentCondition) []wordPart {
	return sentence(c, api.MaxSegmentConditions, maxShown)
}

func shortWords(c api.SegmentCondition) []wordPart { return sentence(c, wordsFilters, wordsLength) }

func sentence(c api.SegmentCondition, most, length int) []wordPart {
	w := &condWords{most: most, length: length}
	w.condition(c, false)
	if w.more > 0 {
		w.say(", and " + number(w.more) + " more")
	}
	return w.parts
}

// condition says a condition. Within another one, several branches stand in brackets.
func (w *condWords) condition(c api.SegmentCondition, within bool) {
	switch {
	case c.Filter != "":
		w.filter(c)
	case c.Not != nil:
		w.say("not ")
		w.condition(*c.Not, true)
	case len(c.And)+len(c.Or) > 0:
		branches, between := c.And, " and "
		if len(c.Or) > 0 {
			branches, between = c.Or, " or "
		}
		bracket := within && len(branches) > 1 && w.named < w.most
		if bracket {
			w.say("(")
		}
		for i, branch := range branches {
			if w.named == w.most {
				w.more += filtersOf(branch)
				continue
			}
			if i > 0 {
				w.say(joint(between, branches[i-1], branch))
			}
			w.condition(branch, true)
		}
		if bracket {
			w.say(")")
		}
	}
}

// joint joins a branch to the one before it.
func joint(between string, before, branch api.SegmentCondition) string {
	if branch.Not != nil && before.Not == nil && between == " and " {
		return ", but "
	}
	return between
}

func (w *condWords) filter(c api.SegmentCondition) {
	if w.named == w.most {
		w.more++
		return
	}
	w.named++
	text := c.Filter
	if f, err := event.ParseFilter(c.Filter); err == nil {
		text = f.Facet + ": " + f.Value
	}
	w.parts = append(w.parts, wordPart{Text: visible(text, w.length), Outside: true})
	if c.Above > 0 {
		w.say(" above " + score(c.Above))
	}
	if !c.HalfLife.IsZero() {
		w.say(" (half-life " + span(c.HalfLife.String()) + ")")
	}
}

// filtersOf counts the filters of a condition.
func filtersOf(c api.SegmentCondition) int {
	if c.Filter != "" {
		return 1
	}
	n := 0
	for _, branch := range c.And {
		n += filtersOf(branch)
	}
	for _, branch := range c.Or {
		n += filtersOf(branch)
	}
	if c.Not != nil {
		n += filtersOf(*c.Not)
	}
	return n
}

// segmentArgs are the arguments of the command line that say a condition: flags, or the file that
// holds its JSON if flags cannot say it.
func segmentArgs(c api.SegmentCondition) string {
	branches := c.And
	if len(branches) == 0 {
		branches = []api.SegmentCondition{c}
	}
	var args []string
	holds := false // the command asks for a filter that holds
	for _, branch := range branches {
		flag, filter := "--where ", branch
		if branch.Not != nil {
			flag, filter = "--without ", *branch.Not
		}
		holds = holds || branch.Not == nil
		text, ok := filterArg(filter)
		if !ok {
			return "condition.json"
		}
		args = append(args, flag+shellArg(text))
	}
	if !holds {
		return "condition.json"
	}
	return strings.Join(args, " ")
}

// filterArg writes a filter as the command line reads it. ok is false if its text has a sign that the
// command line takes for another part, or a character that a terminal does not show.
func filterArg(c api.SegmentCondition) (text string, ok bool) {
	if c.Filter == "" || len(c.Filter) > maxValueLink || !plain(c.Filter) || strings.ContainsAny(c.Filter, "@>") ||
		c.Filter != strings.TrimSpace(c.Filter) {
		return "", false
	}
	text = c.Filter
	if c.Above > 0 {
		text += " > " + plainNumber(c.Above)
	}
	if !c.HalfLife.IsZero() {
		text += " @" + c.HalfLife.String()
	}
	return text, true
}

// plainNumber writes a number with all its digits, as a field of a form takes it.
func plainNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
