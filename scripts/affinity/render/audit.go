package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Audit writes a line per difference, or one line if there are none.
func Audit(out io.Writer, a api.Audit) error {
	var text bytes.Buffer
	for _, d := range a.Differences {
		fmt.Fprintln(&text, difference(d))
	}
	if a.Omitted > 0 {
		fmt.Fprintf(&text, "and %s\n", cli.Count(a.Omitted, "more difference"))
	}
	if a.Differing == 0 {
		fmt.Fprintf(&text, "no differences: %s\n", AuditExtent(a))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// AuditExtent says what an audit compared.
func AuditExtent(a api.Audit) string {
	text := fmt.Sprintf("%s compared with %s", cli.Count(a.Compared, "user"), cli.Count(a.Events, "event"))
	if a.TooLarge > 0 {
		text += fmt.Sprintf(", %s not compared for having more than 100,000 values", cli.Count(a.TooLarge, "user"))
	}
	if a.Compared+a.TooLarge < a.Sampled {
		text = fmt.Sprintf("%d of %s compared before the time was up, with %s", a.Compared,
			cli.Count(a.Sampled, "user"), cli.Count(a.Events, "event"))
	}
	return fmt.Sprintf("%s, %d with their stored profiles too", text, a.Stored)
}

// difference is one difference in a line.
func difference(d api.AuditDifference) string {
	what := d.Which + " " + d.What
	switch {
	case d.Facet != "":
		what += " " + d.Facet + ":" + d.Value
	case d.Value != "":
		what += " " + d.Value
	}
	if !d.HalfLife.IsZero() {
		what += fmt.Sprintf(" (half-life %s)", d.HalfLife)
	}
	return cli.Printable(fmt.Sprintf("%s: %s: want %s, got %s", d.UserToken, what, orNothing(d.Want), orNothing(d.Got)))
}

// SegmentsAudit writes a line per difference of an audit of segments, or one line if there
// are none.
func SegmentsAudit(out io.Writer, a api.Audit) error {
	var text bytes.Buffer
	for _, d := range a.Segments.Differences {
		who := cli.Printable(d.UserToken)
		if d.UserToken == "" {
			who = "all users"
		}
		line := fmt.Sprintf("%s: %s of %s", who, d.What, d.Where)
		if d.What == "score" || d.What == "total" {
			line += fmt.Sprintf(": want %v, got %v", d.Want, d.Got)
		}
		fmt.Fprintln(&text, cli.Printable(line))
	}
	if a.Segments.Omitted > 0 {
		fmt.Fprintf(&text, "and %s\n", cli.Count(a.Segments.Omitted, "more difference"))
	}
	if len(a.Segments.Differences) == 0 {
		fmt.Fprintf(&text, "no differences: %s\n", SegmentsExtent(a))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// SegmentsExtent says what an audit of segments compared.
func SegmentsExtent(a api.Audit) string {
	s := a.Segments
	text := cli.Count(s.Conditions, "condition")
	if s.Conditions < s.Planned {
		text = fmt.Sprintf("%d of %s before the time was up", s.Conditions, cli.Count(s.Planned, "condition"))
	}
	return fmt.Sprintf("%s over a sample of %s, %s judged", text, cli.Count(a.Sampled, "user"),
		cli.Count(s.Judged, "profile"))
}

func orNothing(value json.RawMessage) string {
	if len(value) == 0 {
		return "nothing"
	}
	return string(value)
}
