package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// maxListed is how many affinities of a profile an example shows.
const maxListed = 5

// Preview writes what a strategy would change.
func Preview(out io.Writer, p api.Preview, colors *Palette) error {
	var text bytes.Buffer
	active := "no strategy is active"
	if p.StrategyVersion > 0 {
		active = fmt.Sprintf("version %d is active", p.StrategyVersion)
	}
	fmt.Fprintf(&text, "%s of %s would change (%s sampled; %s)\n", colors.Bold(fmt.Sprint(p.Changed)), cli.Count(p.Known, "profile"),
		cli.Count(p.Sampled, "user"), active)
	if from := p.ChosenFrom; from != nil && !from.All {
		fmt.Fprintf(&text, "sampled from %s only, a stretch that begins at a random place: from %s to %s; no other user was looked at\n",
			cli.Count(from.Users, "user"), cli.Printable(from.First), cli.Printable(from.Last))
	}
	if r := p.RankCorrelation; r != nil {
		fmt.Fprintf(&text, "rank correlation: %.3f on average, %.3f or less for a tenth of the users, %.3f at least; 1 is the same order\n", r.Mean, r.P10, r.Min)
	}
	for _, f := range p.Facets {
		fmt.Fprintf(&text, "\n%s, mean scores:\n", cli.Printable(f.Facet))
		widest := 0
		for _, m := range f.Movers {
			widest = max(widest, len([]rune(cli.Printable(m.Value))))
		}
		for _, m := range f.Movers {
			fmt.Fprintf(&text, "  %-*s  %*s -> %-*s  %s\n", widest, cli.Printable(m.Value), scoreWidth, number(m.Before),
				scoreWidth, number(m.After), cli.Count(m.Users, "user"))
		}
	}
	for i, e := range p.Examples {
		if i == 0 {
			fmt.Fprintf(&text, "\nthe most changed:\n")
		}
		fmt.Fprintf(&text, "  %s  rank correlation %.3f\n    before  %s\n    after   %s\n",
			colors.Bold(cli.Printable(e.UserToken)), e.RankCorrelation, listAffinities(e.Before), listAffinities(e.After))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// listAffinities is the first affinities of a profile in a line.
func listAffinities(list []api.Affinity) string {
	if len(list) == 0 {
		return "nothing"
	}
	var parts []string
	for _, a := range list[:min(maxListed, len(list))] {
		parts = append(parts, label(a)+" "+number(a.Score))
	}
	if len(list) > maxListed {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
}
