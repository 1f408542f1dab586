package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/tune"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Tuning writes what a search found: the table of the untouched slice, what
// changed, and whether to take it. path is the file of the tuned strategy, "" if
// none was written.
func Tuning(out io.Writer, o *tune.Outcome, given strategy.Strategy, b api.Backtest, gains Gains, path string,
	colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s on %s; the untouched slice has %s of %s, the cut is %s\n\n",
		colors.Bold(plural(int64(o.Trials), "trial")),
		plural(int64(o.Tuning), "case"), plural(int64(b.Cases), "case"), plural(int64(b.Candidates), "candidate"),
		timestamp(b.Cut))
	writeResults(&text, b.Results, b.At, gains, colors)
	fmt.Fprintf(&text, "\nIntervals are of 95 %%, by bootstrap over users; gains are paired.\n\n")
	writeChanges(&text, given, o.Strategy)
	fmt.Fprintln(&text, Verdict(o, given))
	if path != "" {
		fmt.Fprintf(&text, "the tuned strategy is in %s; see what it changes: affinity strategy preview %s\n",
			cli.Printable(path), cli.Printable(path))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// Verdict says in words whether to take the tuned strategy in place of the given
// one.
func Verdict(o *tune.Outcome, given strategy.Strategy) string {
	switch {
	case o.Trials < 2:
		return "not recommended: one trial judges the given strategy alone"
	case o.Strategy.Equal(given):
		return "not recommended: no trial ranked better than the given strategy"
	case o.Recommended:
		return "recommended: the tuned strategy ranks better than the given one, by " + Gained(o.Gain)
	}
	return "not recommended: the gain over the given strategy may be chance, " + Gained(o.Gain)
}

// Gained is a gain in percent with its interval.
func Gained(g backtest.Gain) string {
	if g.Ratio == 0 {
		return fmt.Sprintf("%+.4f nDCG (%+.4f to %+.4f)", g.Difference, g.Low, g.High)
	}
	percent := func(ratio float64) float64 { return 100 * (ratio - 1) }
	return fmt.Sprintf("%+.0f %% (%+.0f to %+.0f)", percent(g.Ratio), percent(g.RatioLow), percent(g.RatioHigh))
}

// writeChanges writes a line for each setting that differs.
func writeChanges(text *bytes.Buffer, given, tuned strategy.Strategy) {
	before, after := settings(given), settings(tuned)
	var lines []string
	for _, name := range slices.Concat(before.names, after.names) {
		old, now := before.values[name], after.values[name]
		if now != "" && old != now {
			lines = append(lines, fmt.Sprintf("  %s %s -> %s\n", cli.Printable(name), cmp.Or(old, "absent"), now))
			before.values[name] = now // once
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(text, "what changed:\n%s\n", strings.Join(lines, ""))
		writeInversions(text, tuned)
	}
}

// writeInversions says which events of little effort score more than conversions, which the search may
// find and no merchandiser expects.
func writeInversions(text *bytes.Buffer, tuned strategy.Strategy) {
	worth := map[event.Type]int{event.View: 1, event.Click: 2, event.Conversion: 3}
	for _, more := range tuned.EventsScoring {
		for _, less := range tuned.EventsScoring {
			if worth[more.EventType] < worth[less.EventType] && more.Score > less.Score {
				fmt.Fprintf(text, "Note: %s %q scores %d and %s %q %d. Here the former says more of what users turn to next, "+
					"which is not what it is worth to the shop: set the scores that you mean.\n\n", more.EventType,
					cli.Printable(more.EventName), more.Score, less.EventType, cli.Printable(less.EventName), less.Score)
				return
			}
		}
	}
}

// named are settings in an order.
type named struct {
	names  []string
	values map[string]string
}

func (n *named) add(name string, value any) {
	n.names = append(n.names, name)
	n.values[name] = fmt.Sprint(value)
}

// settings lists what a search may change.
func settings(s strategy.Strategy) named {
	n := named{values: map[string]string{}}
	for _, e := range s.EventsScoring {
		n.add(fmt.Sprintf("event %s %q", e.EventType, e.EventName), e.Score)
	}
	for _, f := range s.FacetsScoring {
		n.add("facet "+f.FacetName, f.Score)
	}
	halfLives := "none"
	if len(s.HalfLives) > 0 {
		halfLives = strings.Trim(fmt.Sprint(s.HalfLives), "[]")
	}
	n.add("half-lives", halfLives)
	r := s.RankingOrDefault()
	n.add("contrast", r.Contrast)
	n.add("session weight", r.Session.Weight)
	n.add("popularity weight", r.Popularity.Weight)
	n.add("pairs weight", r.Pairs.Weight)
	n.add("freshness weight", r.Freshness.Weight)
	if r.Session.Weight > 0 {
		n.add("session half-life", r.Session.HalfLife)
	}
	if r.Popularity.Weight > 0 {
		n.add("popularity half-life", r.Popularity.HalfLife)
	}
	if r.Freshness.Weight > 0 {
		n.add("freshness by", fmt.Sprintf("%s, half-life %v", r.Freshness.Attribute, r.Freshness.HalfLife))
	}
	return n
}
