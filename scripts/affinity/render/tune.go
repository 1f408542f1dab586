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
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Found is what a search found.
type Found struct {
	Trials, Cases int               // judged, and that the search saw
	Given         strategy.Strategy // where it began
	Tuning        api.Tuning
	Report        api.Backtest     // of the untouched slice
	Gain          api.BacktestGain // of the tuned strategy over the given one
}

// order is the order that the search leads to.
func (f Found) order() string {
	if f.Tuning.Recommended {
		return api.TunedOrder
	}
	return api.GivenOrder
}

// Tuning writes what a search found: what it is worth, the tables of the untouched
// slice, what changed, and whether to take it. path is the file of the tuned
// strategy, "" if none was written.
func Tuning(out io.Writer, f Found, path string, colors *Palette) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s on %s; the untouched slice has %s of %s, the cut is %s\n\n",
		colors.Bold(plural(int64(f.Trials), "trial")), plural(int64(f.Cases), "case"),
		plural(int64(f.Report.Cases), "case"), plural(int64(f.Report.Candidates), "candidate"), timestamp(f.Report.Cut))
	writeLifts(&text, f.order()+": ", f.Report, f.order(), colors)
	writeCaveat(&text, f.Report)
	fmt.Fprintln(&text)
	writeTables(&text, f.Report, colors)
	writeLimits(&text)
	fmt.Fprintln(&text)
	writeChanges(&text, f.Given, f.Tuning.Strategy)
	fmt.Fprintln(&text, f.verdict())
	if path != "" {
		fmt.Fprintf(&text, "the tuned strategy is in %s; see what it changes: affinity strategy preview %s\n",
			cli.Printable(path), cli.Printable(path))
	}
	_, err := out.Write(text.Bytes())
	return err
}

// verdict says in words whether to take the tuned strategy in place of the given
// one.
func (f Found) verdict() string {
	among := ""
	if w := f.Tuning.Within; w != "" {
		among = " within " + cli.Printable(w)
	}
	switch {
	case f.Trials < 2:
		return "not recommended: one trial judges the given strategy alone"
	case f.Tuning.Strategy.Equal(f.Given):
		return "not recommended: no trial ranked better than the given strategy"
	case f.Tuning.Recommended:
		return "recommended: the tuned strategy ranks better than the given one" + among + ", by " + f.Gain.Percent()
	}
	return "not recommended: the gain over the given strategy" + among + " may be chance, " + f.Gain.Percent()
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
	n.add("sequence weight", r.Sequence.Weight)
	n.add("neighbours weight", r.Neighbours.Weight)
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
