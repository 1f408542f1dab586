package render

import (
	"bytes"
	"fmt"
	"io"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// Gains returns the gain of a result over the baseline popularity, with its
// paired interval. ok is false if it is not known.
type Gains func(name string) (gain backtest.Gain, ok bool)

// Backtest writes how well strategies and baselines did. gains and within may
// be nil: an answer of the engine has no gains.
func Backtest(out io.Writer, b api.Backtest, gains, within Gains, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s of %s; the cut is %s\n\n", colors.Bold(plural(int64(b.Cases), "case")),
		plural(int64(b.Candidates), "candidate"), timestamp(b.Cut))
	writeResults(&text, b.Results, b.At, gains, colors)
	if w := b.Within; w != nil {
		fmt.Fprintf(&text, "\namong objects that share a value of %s with what the user turned to, %s:\n\n",
			cli.Printable(w.Facet), plural(int64(w.Cases), "case"))
		writeResults(&text, w.Results, b.At, within, colors)
	}
	fmt.Fprintf(&text, "\nIntervals are of 95 %%, by bootstrap over users; gains are paired.\n")
	_, err := out.Write(text.Bytes())
	return err
}

func writeResults(text *bytes.Buffer, results []api.BacktestResult, at int, gains Gains, colors *Palette) {
	widest := len("ranking")
	for _, r := range results {
		widest = max(widest, len([]rune(cli.Printable(r.Name))))
	}
	header := ""
	if gains != nil {
		header = "   gain over " + backtest.NamePopularity
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
func gainText(name string, gains Gains) string {
	if gains == nil || name == backtest.NamePopularity {
		return ""
	}
	g, ok := gains(name)
	if !ok || g.Ratio == 0 && g.RatioHigh == 0 {
		return "   popularity has no hit"
	}
	percent := func(ratio float64) float64 { return 100 * (ratio - 1) }
	return fmt.Sprintf("   %+.0f %% (%+.0f to %+.0f)", percent(g.Ratio), percent(g.RatioLow), percent(g.RatioHigh))
}
