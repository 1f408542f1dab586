package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
)

// writeLifts writes what an order is worth, the smaller lift first and bold.
func writeLifts(text *bytes.Buffer, begin string, b api.Backtest, order string, colors *Palette) {
	for i, l := range b.Lifts(order) {
		if i == 0 {
			fmt.Fprintln(text, colors.Bold(begin+cli.Printable(l.Words())))
		} else {
			fmt.Fprintf(text, "%s%s\n", strings.Repeat(" ", len([]rune(begin))), cli.Printable(l.Words()))
		}
	}
}

// writeCaveat says so if the candidates are not those of pages of a category.
func writeCaveat(text *bytes.Buffer, b api.Backtest) {
	if caveat := b.Caveat(); caveat != "" {
		fmt.Fprintf(text, "%s\n--within FACET judges what a page of yours shows.\n", cli.Printable(caveat))
	}
}

// writeTables writes the results within the facet, then those in the whole
// catalog, and what their rows are.
func writeTables(text *bytes.Buffer, b api.Backtest, colors *Palette) {
	var chosen []string
	note := func(results []api.BacktestResult, among string) {
		for _, r := range results {
			if r.HalfLife != "" {
				chosen = append(chosen, strings.TrimSpace(cli.Printable(r.HalfLife)+" "+among))
			}
		}
	}
	if w := b.Within; w != nil {
		facet := cli.Printable(w.Facet)
		fmt.Fprintf(text, "within %s, %s: the objects that share a value of it with what the user turned to, "+
			"as on a page\n\n",
			facet, plural(int64(w.Cases), "case"))
		writeResults(text, w.Results, b.At, w.Gains, colors)
		fmt.Fprintf(text, "\nin the whole catalog, %s:\n\n", plural(int64(b.Cases), "case"))
		note(w.Results, "within "+facet)
		note(b.Results, "in the whole catalog")
	} else {
		note(b.Results, "")
	}
	writeResults(text, b.Results, b.At, b.Gains, colors)
	fmt.Fprintln(text)
	if len(chosen) > 0 {
		fmt.Fprintf(text, "%s counts with the half-life that did best for seven tenths of the users:\n%s. "+
			"All counts of what users did end at the cut.\n",
			api.RecentBestSellers, strings.Join(chosen, ", "))
	}
	fmt.Fprintf(text, "%s, %s and %s are these features alone. They follow each user's last objects, so they\n"+
		"are no lists that everybody sees.\n"+
		"Intervals are of 95 %%, by bootstrap over users; gains are paired, over the best list that everybody sees.\n",
		api.PairsOrder, api.SequenceOrder, api.NeighboursOrder)
}

// writeLimits says what a lift is not.
func writeLimits(text *bytes.Buffer) {
	fmt.Fprintf(text, "\n%s\nWhat a lift means: %s\n", strings.Join(api.LiftLimits, "\n"), api.LiftGuide)
}

func writeResults(text *bytes.Buffer, results []api.BacktestResult, at int, gains []api.BacktestGain, colors *Palette) {
	widest := len("ranking")
	for _, r := range results {
		widest = max(widest, len([]rune(cli.Printable(r.Name))))
	}
	header := ""
	if len(gains) > 0 {
		header = "   gain over " + cli.Printable(gains[0].Over)
	}
	fmt.Fprintf(text, "  %-*s  %-25s  %8s  %6s  %8s%s\n", widest, "ranking", fmt.Sprintf("nDCG@%d", at),
		"hit rate", "MRR", "coverage", header)
	for _, r := range results {
		name := fmt.Sprintf("%-*s", widest, cli.Printable(r.Name))
		fmt.Fprintf(text, "  %s  %-25s  %6.1f %%  %.4f  %6.1f %%%s\n", colors.Bold(name),
			fmt.Sprintf("%.4f (%.4f to %.4f)", r.NDCG, r.NDCGLow, r.NDCGHigh), 100*r.HitRate, r.MRR, 100*r.Coverage,
			gainText(r.Name, gains))
	}
}

// gainText is the gain of a result in percent.
func gainText(name string, gains []api.BacktestGain) string {
	at := slices.IndexFunc(gains, func(g api.BacktestGain) bool { return g.Name == name })
	switch {
	case at < 0:
		return ""
	case gains[at].Ratio == 0 && gains[at].RatioHigh == 0:
		return "   " + cli.Printable(gains[at].Over) + " has no hit"
	}
	return "   " + gains[at].Percent()
}
