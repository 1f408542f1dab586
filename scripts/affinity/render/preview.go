package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// faded is the scale below which a preview says that scores fade.
const faded = 1e-3

// maxListed is how many affinities of a profile an example shows.
const maxListed = 5

// Preview writes what a strategy would change.
func Preview(out io.Writer, p api.Preview, colors *Palette) error {
	var text bytes.Buffer
	active := "no strategy is active"
	if p.StrategyVersion > 0 {
		active = fmt.Sprintf("compared with version %d, which is active", p.StrategyVersion)
	}
	fmt.Fprintf(&text, "the order of values would change for %s of %s (%s sampled; %s)\n",
		colors.Bold(fmt.Sprint(p.Values.Changed)), cli.Count(p.Known, "user"),
		cli.Count(p.Sampled, "user"), active)
	if from := p.ChosenFrom; from != nil && !from.All {
		fmt.Fprintf(&text, "sampled from %s only, a stretch that begins at a random place: from %s to %s; no other "+
			"user was looked at\n",
			cli.Count(from.Users, "user"), cli.Printable(from.First), cli.Printable(from.Last))
	}
	fmt.Fprintf(&text, "  among the first five for %d, at the first place for %d; shares of values would change for %d\n",
		p.Values.TopFiveChanged, p.Values.TopChanged, p.Changed)
	if o := p.Objects; o != nil {
		fmt.Fprintf(&text, "the order of the same %s of %s would change for %s: among the first five for %d, at the "+
			"first place for %d\n",
			cli.Count(o.Compared, "object"), cli.Printable(o.Index), colors.Bold(cli.Count(o.Changed, "user")),
			o.TopFiveChanged, o.TopChanged)
	}
	if r := p.RankCorrelation; r != nil {
		fmt.Fprintf(&text, "rank correlation: %.3f on average, %.3f or less for a tenth of the users, %.3f at "+
			"least; 1 is the same order\n", r.Mean, r.P10, r.Min)
	}
	if p.Scale != nil && *p.Scale < faded {
		fmt.Fprintf(&text, "scores would fall to %s of what they are: the events are too old for the half-life, and "+
			"count next to nothing\n", number(*p.Scale))
	}
	for _, f := range p.Facets {
		fmt.Fprintf(&text, "\n%s, mean share of the profile:\n", cli.Printable(f.Facet))
		widest := 0
		for _, m := range f.Movers {
			widest = max(widest, len([]rune(cli.Printable(m.Value))))
		}
		for _, m := range f.Movers {
			fmt.Fprintf(&text, "  %-*s  %5.1f %% -> %5.1f %%  %+.1f points  %s\n", widest, cli.Printable(m.Value),
				100*m.ShareBefore, 100*m.ShareAfter,
				100*(m.ShareAfter-m.ShareBefore), cli.Count(m.Users, "user"))
		}
	}
	for i, e := range p.Examples {
		if i == 0 {
			fmt.Fprintf(&text, "\nthe most changed:\n")
		}
		fmt.Fprintf(&text, "  %s  rank correlation %.3f\n    before  %s\n    after   %s\n",
			colors.Bold(cli.Printable(e.UserToken)), e.RankCorrelation, listAffinities(e.Before), listAffinities(e.After))
	}
	fmt.Fprintf(&text, "\nread %s and %s of %s in %.1f s\n", cli.Count(p.Cost.Events, "event"),
		cli.Count(p.Cost.Blocks, "block"), cli.Count(p.Sampled, "user"), float64(p.Cost.Took)/1000)
	if p.Cost.Recompute != nil {
		fmt.Fprintln(&text, recomputeCost(p))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// recomputeCost says what a recompute of all users takes, or of a million.
func recomputeCost(p api.Preview) string {
	r, whom := p.Cost.Recompute, fmt.Sprintf("%d such users", p.Cost.Recompute.Users)
	if p.ChosenFrom != nil && p.ChosenFrom.All {
		whom = "all " + cli.Count(r.Users, "user")
	}
	cpu, usd := fmt.Sprintf("about %.0f s", r.CPUSeconds), fmt.Sprintf("%.4f US dollars", r.USD)
	if r.CPUSeconds < 1 {
		cpu, usd = "less than a second", "less than 0.0001 US dollars"
	}
	return fmt.Sprintf("a recompute of %s and %s takes %s of CPU, for %s: an estimate; `affinity plan` has the rest",
		whom, cli.Count(r.Events, "event"), cpu, usd)
}

// listAffinities is the first affinities of a profile in a line.
func listAffinities(list []api.Affinity) string {
	if len(list) == 0 {
		return "nothing"
	}
	var parts []string
	for _, a := range list[:min(maxListed, len(list))] {
		parts = append(parts, label(a))
	}
	if len(list) > maxListed {
		parts = append(parts, "...")
	}
	return strings.Join(parts, ", ")
}
