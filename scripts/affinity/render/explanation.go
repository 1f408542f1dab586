package render

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Explanation writes an explanation, with the table of a score if it has one.
func Explanation(out io.Writer, x api.Explanation, colors *Palette) error {
	var text bytes.Buffer
	retention := "retention " + cli.Count(x.RetentionDays, "day")
	if x.RetentionDays == 0 {
		retention = "no retention limit"
	}
	fmt.Fprintf(&text, "%s  strategy version %d  %s  as of %s\n", colors.Bold(cli.Printable(x.UserToken)),
		x.StrategyVersion, retention, timestamp(x.AsOf))
	for _, r := range x.Reasons {
		fmt.Fprintf(&text, "  - %s\n", cli.Printable(r))
	}
	if x.FirstEventAt != nil && x.LastEventAt != nil {
		fmt.Fprintf(&text, "  %s from %s to %s\n", cli.Count(x.Events.Accepted, "event"), timestamp(*x.FirstEventAt),
			timestamp(*x.LastEventAt))
		for _, c := range categories(x.Events) {
			if c.events > 0 {
				fmt.Fprintf(&text, "  %8d %s\n", c.events, c.text)
			}
		}
	}
	if x.ScoreExplanation != nil {
		if err := drawScore(&text, *x.ScoreExplanation, colors); err != nil {
			return err
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

type category struct {
	events int
	text   string
}

// categories add up to the accepted events. An event is in the first that
// applies.
func categories(e api.ExplainedEvents) []category {
	return []category{
		{e.Deleted, "deleted with the user"},
		{e.OutsideWindow, "older than the retention"},
		{e.Ahead, "later than now"},
		{e.NotInStrategy, "not scored by the strategy"},
		{e.WithoutFilters, "without filters"},
		{e.Ignored, "without a value that scores"},
		{e.Counted, "counted"},
	}
}

func drawScore(text *bytes.Buffer, x api.ScoreExplanation, colors *Palette) error {
	fmt.Fprintf(text, "\n%s scores %s\n", colors.Bold(cli.Printable(x.Facet+":"+x.Value)), number(x.Score))
	if len(x.Contributions) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  time\tevent\tobjects\tweight\tcount\tdecay\tcontribution")
	for _, c := range x.Contributions {
		switch {
		case c.EarlierEvents != nil:
			fmt.Fprintf(table, "  %s\t%s until %s\t\t\t\t\t%s\n", timestamp(c.From), cli.Count(c.Events, "event"),
				timestamp(c.To), number(c.Contribution))
		case c.ContributedEvent != nil:
			of := ""
			if c.UserToken != "" {
				of = " by " + cli.Printable(c.UserToken)
			}
			if len(c.Purposes) > 0 {
				of += " for " + cli.Printable(strings.Join(c.Purposes, ", "))
			}
			fmt.Fprintf(table, "  %s\t%s %s%s\t%s\t%d\t%d\t%.4g\t%s\n", timestamp(c.Time), cli.Printable(c.Type),
				cli.Printable(strconv.Quote(c.Name)), of,
				objects(*c.ContributedEvent), c.Weight, c.Count, c.Decay, number(c.Contribution))
		}
	}
	return table.Flush()
}

// objects lists the objects of an event, and those of their values that count as
// the value in question.
func objects(e api.ContributedEvent) string {
	text := e.Index
	if len(e.ObjectIDs) > 0 {
		text += ": " + strings.Join(e.ObjectIDs, ", ")
	}
	if len(e.Values) > 0 {
		text += " (" + strings.Join(e.Values, ", ") + ")"
	}
	return cli.Printable(text)
}
