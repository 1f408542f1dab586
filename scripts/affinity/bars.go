package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
)

// The columns of a profile, in characters.
const (
	labelMost = 40
	barMost   = 40
	scoreWide = 10
)

// drawProfile writes a profile for people: a line of what it is, then a bar an affinity. halfLife picks the score, 0 the strategy's first.
func drawProfile(out io.Writer, p profileAnswer, halfLife int, colors *palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s  last event %s%s  strategy version %d  %s\n", colors.bold(cli.Printable(p.UserToken)),
		p.LastEventAt.UTC().Format(time.RFC3339), ago(p.AsOf.Sub(p.LastEventAt)), p.StrategyVersion, cli.Printable(p.Source))
	switch {
	case len(p.Affinities) > 0:
		drawBars(&text, p.Affinities, halfLife, cli.Width(out), colors)
	case p.StrategyVersion == 0:
		fmt.Fprintln(&text, "  no affinities: the app has no strategy yet (affinity strategy set FILE)")
	default:
		fmt.Fprintln(&text, "  no affinities: no event of this user counts under the strategy (affinity strategy get)")
	}
	if more := p.Total - len(p.Affinities); more > 0 {
		fmt.Fprintf(&text, "  and %d more (--limit %d shows all)\n", more, p.Total)
	}
	_, err := out.Write(text.Bytes())
	return err
}

func drawBars(text *bytes.Buffer, affinities []affinityAnswer, halfLife, columns int, colors *palette) {
	highest, widest := 0.0, 0
	for _, a := range affinities {
		highest = max(highest, a.under(halfLife))
		widest = max(widest, uniseg.StringWidth(label(a)))
	}
	long := min(barMost, max(10, columns-widest-scoreWide-6))
	for _, a := range affinities {
		name := label(a)
		pad := strings.Repeat(" ", widest-uniseg.StringWidth(name))
		bar := drawBar(a.under(halfLife), highest, long)
		fmt.Fprintf(text, "  %s%s  %s  %*s\n", name, pad, colors.paint(a.Facet, bar), scoreWide, number(a.under(halfLife)))
	}
}

// under is the score under that half-life in days; the answer's own score where it was not asked for or is not listed.
func (a affinityAnswer) under(halfLife int) float64 {
	if score, ok := a.Scores[strconv.Itoa(halfLife)]; ok {
		return score
	}
	return a.Score
}

// label is facet:value, cut to labelMost columns.
func label(a affinityAnswer) string {
	name := cli.Printable(a.Facet + ":" + a.Value)
	if uniseg.StringWidth(name) <= labelMost {
		return name
	}
	cut, wide := "", 0
	for g := uniseg.NewGraphemes(name); g.Next() && wide+g.Width() < labelMost; wide += g.Width() {
		cut += g.Str()
	}
	return cut + "…"
}

// drawBar fills its share of long columns, in eighths of a column, and pads the rest.
func drawBar(score, highest float64, long int) string {
	if highest <= 0 || score <= 0 {
		return strings.Repeat(" ", long)
	}
	eighths := max(1, int(math.Round(score/highest*float64(long*8))))
	bar := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return bar + strings.Repeat(" ", long-(eighths+7)/8)
}

// number is a score as short as is fair: whole when it is whole, else with one decimal, more for what is small.
func number(score float64) string {
	switch {
	case score == math.Trunc(score) && math.Abs(score) < 1e10:
		return strconv.FormatFloat(score, 'f', 0, 64)
	case math.Abs(score) >= 1e9 || math.Abs(score) < 0.01:
		return strconv.FormatFloat(score, 'e', 2, 64)
	case math.Abs(score) < 10:
		return strconv.FormatFloat(score, 'f', 3, 64)
	default:
		return strconv.FormatFloat(score, 'f', 1, 64)
	}
}

// ago is an age in words, "" where the clocks leave none to tell.
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
