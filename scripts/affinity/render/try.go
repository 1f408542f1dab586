package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/rank/ranking"
)

// Tried is what an attempt on a log found.
type Tried struct {
	Found
	Guessed bool // Given is a guess from the data
	Log     *backtest.Log
	// Shown are the results of some users under the tuned strategy if it is
	// recommended, else under the given one. Path is the file of that strategy.
	Shown []backtest.Shown
	Path  string
}

const (
	shownPlaces   = 5  // of a result
	shownHistory  = 4  // objects, the newest
	titleWidth    = 36 // characters of an object's name
	shownFeatures = 2  // of a reason
	shownParts    = 2  // of a feature
)

// Trial writes what an attempt found, the answer first.
func Trial(out io.Writer, t Tried, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s of %s on %s; the cut is %s\n\n", plural(int64(t.Log.Events()), "event"),
		plural(int64(t.Log.Users()), "user"),
		plural(int64(t.Log.Objects()), "object"), timestamp(t.Report.Cut))
	writeLifts(&text, "On your data: ", t.Report, t.order(), colors)
	t.writeFirst(&text)
	writeCaveat(&text, t.Report)
	fmt.Fprintln(&text)
	writeTables(&text, t.Report, colors)
	writeLimits(&text)
	fmt.Fprintln(&text)
	if t.Guessed {
		fmt.Fprintln(&text, "given is a strategy that was guessed from the data: events by their type, all facets alike.")
	}
	writeChanges(&text, t.Given, t.Tuning.Strategy)
	fmt.Fprintln(&text, t.verdict())
	if !t.Tuning.Recommended {
		fmt.Fprintln(&text, "What follows is of the given strategy.")
	}
	for _, shown := range t.Shown {
		writeShown(&text, t.Log, shown, colors)
	}
	fmt.Fprintf(&text, "\nThe %s strategy is in %s: affinity import --strategy %s sets it in an engine.\n", t.order(),
		cli.Printable(t.Path), cli.Printable(t.Path))
	_, err := out.Write(text.Bytes())
	return err
}

// writeFirst says what the first lift counts, and how many users found something.
func (t Tried) writeFirst(text *bytes.Buffer) {
	first := t.Tuning.Lifts[0]
	results := t.Report.Results
	if first.Within != "" {
		results = t.Report.Within.Results
	}
	rate := func(name string) float64 {
		for _, r := range results {
			if r.Name == name {
				return 100 * r.HitRate
			}
		}
		return 0
	}
	fmt.Fprintf(text, "That is the nDCG@%d of what users turned to next, in cases that the search has not seen, "+
		"with 95 %% intervals.\n%s, %.0f of 100 found it among the first %d, and %.0f with %s.\n",
		t.Report.At, capital(cli.Printable(first.Among())), rate(first.Name), t.Report.At, rate(first.Over), cli.Printable(first.List()))
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// writeShown writes a user's results before and after. A star marks what the user
// turned to.
func writeShown(text *bytes.Buffer, l *backtest.Log, shown backtest.Shown, colors *Palette) {
	history := shown.History[max(0, len(shown.History)-shownHistory):]
	earlier := ""
	if n := len(shown.History) - len(history); n > 0 {
		earlier = fmt.Sprintf("%d more, ", n)
	}
	fmt.Fprintf(text, "\n%s turned to %s%s, and then (*) to %s\n", colors.Bold(cli.Printable(shown.User)), earlier,
		titles(l, history), titles(l, shown.Relevant[:min(len(shown.Relevant), shownPlaces)]))
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  \tbest sellers\tfor this user\twhy\n")
	for i := range min(shownPlaces, len(shown.Items)) {
		item := shown.Items[i]
		fmt.Fprintf(table, "  %d\t%s\t%s\t%s\n", i+1, starred(l, shown.Popular[i], shown.Relevant),
			starred(l, item.ObjectID, shown.Relevant),
			cli.Printable(Reason(inShort(l, item))))
	}
	_ = table.Flush() // a buffer does not fail
}

func starred(l *backtest.Log, objectID string, relevant []string) string {
	if slices.Contains(relevant, objectID) {
		return "* " + titled(l, objectID)
	}
	return "  " + titled(l, objectID)
}

func titles(l *backtest.Log, objectIDs []string) string {
	var all []string
	for _, id := range objectIDs {
		all = append(all, titled(l, id))
	}
	return strings.Join(all, ", ")
}

// titled is an object's title, or its ID.
func titled(l *backtest.Log, objectID string) string {
	title := l.Title(objectID)
	if title == "" {
		title = objectID
	}
	if r := []rune(title); len(r) > titleWidth {
		title = string(r[:titleWidth-1]) + "…"
	}
	return cli.Printable(title)
}

// inShort is an item with what adds the most to its score, in the form of an
// answer.
func inShort(l *backtest.Log, item ranking.Item) api.RankedItem {
	features := slices.Clone(item.Features)
	slices.SortStableFunc(features, func(a, b ranking.Feature) int { return cmp.Compare(b.Value, a.Value) })
	r := api.RankedItem{ObjectID: item.ObjectID, Score: item.Score}
	for _, f := range features[:min(len(features), shownFeatures)] {
		short := api.RankFeature{Name: f.Name, Value: f.Value}
		for _, p := range f.Parts[:min(len(f.Parts), shownParts)] {
			if f.Name == ranking.Pairs || f.Name == ranking.Sequence || f.Name == ranking.Related {
				p.Name = titled(l, p.Name)
			}
			short.Parts = append(short.Parts, api.RankPart{Name: p.Name, Value: p.Value})
		}
		r.Features = append(r.Features, short)
	}
	return r
}
