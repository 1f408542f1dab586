package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Versions writes the versions of a strategy, one a line.
func Versions(out io.Writer, versions []api.StrategyVersion, colors *Palette) error {
	if len(versions) == 0 {
		_, err := fmt.Fprintln(out, "the app has no strategy yet (affinity strategy set FILE)")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, v := range versions {
		scores, active := "", ""
		if v.ScoringVersion != v.Version {
			scores = fmt.Sprintf("scores as version %d", v.ScoringVersion)
		}
		if v.Active {
			active = colors.Bold("active")
		}
		note := ""
		if v.Note != "" {
			note = "\t" + cli.Printable(v.Note)
		}
		fmt.Fprintf(w, "version %d\tset %s\t%s\t%s%s\n", v.Version, timestamp(v.SetAt), scores, active, note)
	}
	return w.Flush()
}

// Changes writes what changed between two strategies, a sentence for each
// change.
func Changes(out io.Writer, from, to string, changes []strategy.Change, rescored bool, colors *Palette) error {
	var text bytes.Buffer
	effect := "the scores of profiles change"
	switch {
	case len(changes) == 0:
		effect = "the same strategy"
	case !rescored:
		effect = "the scores of profiles stay"
	}
	fmt.Fprintf(&text, "%s -> %s: %s\n", colors.Bold(cli.Printable(from)), colors.Bold(cli.Printable(to)), effect)
	for _, c := range changes {
		fmt.Fprintf(&text, "  %s\n", cli.Printable(sentence(c)))
	}
	_, err := out.Write(text.Bytes())
	return err
}

func sentence(c strategy.Change) string {
	switch c.Key {
	case "eventsScoring":
		return scored(fmt.Sprintf("%s %q", c.Of[0], c.Of[1]), "counts", "count", c)
	case "facetsScoring":
		return scored("facet "+c.Of[0], "weighs", "count", c)
	case "aliases":
		was, is := c.Of[0]+":"+c.Of[1], ""
		switch {
		case c.Before == nil:
			is = fmt.Sprintf("counts as %v", c.After)
		case c.After == nil:
			is = fmt.Sprintf("no longer counts as %v", c.Before)
		default:
			is = fmt.Sprintf("counts as %v instead of %v", c.After, c.Before)
		}
		return was + " " + is
	case "allowedValues":
		switch facet := "facet " + c.Of[0]; {
		case c.After == nil:
			return facet + " scores all values again"
		case c.Before == nil:
			return facet + " scores no values but " + listOr(c.After, "")
		default:
			return fmt.Sprintf("%s scores no values but %s, instead of %s", facet, listOr(c.After, ""), listOr(c.Before, ""))
		}
	case "eventsScoring.order", "facetsScoring.order":
		return strings.TrimSuffix(c.Key, ".order") + " is in another order"
	case "halfLives":
		return fmt.Sprintf("half-lives: %s instead of %s", listOr(c.After, "none"), listOr(c.Before, "none"))
	default:
		return fmt.Sprintf("%s: %s instead of %s", c.Key, listOr(c.After, "the default"), listOr(c.Before, "the default"))
	}
}

// scored says how the score of an event or a facet changed.
func scored(what, verb, infinitive string, c strategy.Change) string {
	switch {
	case c.Before == nil:
		return fmt.Sprintf("%s %s %v, and did not %s before", what, verb, c.After, infinitive)
	case c.After == nil:
		return fmt.Sprintf("%s no longer counts (%v before)", what, c.Before)
	default:
		return fmt.Sprintf("%s %s %v instead of %v", what, verb, c.After, c.Before)
	}
}

// listOr is a value, or its elements, or a word for nothing.
func listOr(v any, none string) string {
	switch v := v.(type) {
	case nil:
		return none
	case []strategy.HalfLife:
		texts := make([]string, len(v))
		for i, h := range v {
			texts[i] = h.String()
		}
		return strings.Join(texts, ", ")
	case []string:
		return few(v)
	default:
		return fmt.Sprint(v)
	}
}

// fewValues is how many values of a list a sentence names.
const fewValues = 5

func few(values []string) string {
	text := strings.Join(values[:min(len(values), fewValues)], ", ")
	switch more := len(values) - fewValues; {
	case text == "":
		return "none"
	case more > 0:
		return fmt.Sprintf("%s and %d more", text, more)
	}
	return text
}
