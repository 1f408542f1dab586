package render

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// Widths of a profile's columns, in characters.
const (
	maxLabel = 40
	maxBar   = 40
)

// Profile writes a profile: a line about the user, then a bar per affinity.
// halfLife selects the score, "" the strategy's first half-life. reasons say why a profile is
// empty, as an explanation has them; without any the text says how to ask for them.
func Profile(out io.Writer, p api.Profile, halfLife string, reasons []string, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s  last event %s%s  strategy version %d%s  %s\n", colors.Bold(cli.Printable(p.UserToken)),
		timestamp(p.LastEventAt), ago(p.AsOf.Sub(p.LastEventAt.Time)), p.StrategyVersion, inArm(p.Experiment),
		cli.Printable(p.Source))
	switch {
	case len(p.Affinities) > 0:
		drawBars(&text, p.Affinities, halfLife, cli.Width(out), colors)
	case p.Holdout:
		fmt.Fprintln(&text, "  no affinities: the user is held out; with --holdout ignore those that are kept are shown")
	case p.StrategyVersion == 0:
		fmt.Fprintln(&text, "  no affinities: the app has no strategy yet (affinity strategy set FILE)")
	case len(reasons) == 0:
		fmt.Fprintf(&text, "  no affinities: `affinity explain %s` says why\n", cli.Printable(p.UserToken))
	default:
		fmt.Fprintln(&text, "  no affinities:")
		for _, reason := range reasons {
			fmt.Fprintf(&text, "  - %s\n", cli.Printable(reason))
		}
	}
	switch more := p.Total - len(p.Affinities); {
	case more > 0 && p.Truncated:
		fmt.Fprintf(&text, "  and %d more; the profile holds only those that score most\n", more)
	case more > 0:
		fmt.Fprintf(&text, "  and %d more (--limit %d shows all)\n", more, p.Total)
	}
	_, err := out.Write(text.Bytes())
	return err
}

func drawBars(text *bytes.Buffer, affinities []api.Affinity, halfLife string, columns int, colors *Palette) {
	highest, widest := 0.0, 0
	for _, a := range affinities {
		highest = max(highest, scoreOf(a, halfLife))
		widest = max(widest, uniseg.StringWidth(label(a)))
	}
	width := min(maxBar, max(10, columns-widest-scoreWidth-6))
	for _, a := range affinities {
		name := label(a)
		pad := strings.Repeat(" ", widest-uniseg.StringWidth(name))
		bar := drawBar(scoreOf(a, halfLife), highest, width)
		fmt.Fprintf(text, "  %s%s  %s  %*s\n", name, pad, colors.paint(a.Facet, bar), scoreWidth,
			number(scoreOf(a, halfLife)))
	}
}

// scoreOf is the score under a half-life, or the one that ranks if the answer
// does not list that half-life.
func scoreOf(a api.Affinity, halfLife string) float64 {
	if score, ok := a.Scores[halfLife]; ok {
		return score
	}
	return a.Score
}

// label is facet:value, cut to maxLabel columns.
func label(a api.Affinity) string {
	name := cli.Printable(a.Facet + ":" + a.Value)
	if uniseg.StringWidth(name) <= maxLabel {
		return name
	}
	cut, width := "", 0
	for g := uniseg.NewGraphemes(name); g.Next() && width+g.Width() < maxLabel; width += g.Width() {
		cut += g.Str()
	}
	return cut + "…"
}

// drawBar fills the score's share of width columns, in eighths of a column, and
// pads the rest.
func drawBar(score, highest float64, width int) string {
	if highest <= 0 || score <= 0 {
		return strings.Repeat(" ", width)
	}
	eighths := max(1, int(math.Round(score/highest*float64(width*8))))
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar + strings.Repeat(" ", width-(eighths+7)/8)
}

// ago is an age in words, "" if it is negative because the clocks differ.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < time.Minute:
		return fmt.Sprintf(" (%d s ago)", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf(" (%d min ago)", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf(" (%d h ago)", int(d.Hours()))
	default:
		return fmt.Sprintf(" (%d days ago)", int(d.Hours()/24))
	}
}
