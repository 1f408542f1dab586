package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Names of the results of a backtest that are no strategies.
const (
	RandomOrder       = "random"            // the mean of random orders
	BestSellers       = "popularity"        // as of the cut, for everybody
	RecentBestSellers = "popularity-recent" // as of the cut, with a half-life, for everybody
	ShownOrder        = "baseline"          // what was really shown
	PairsOrder        = "pairs"             // what others chose after the user's last objects
	SequenceOrder     = "sequence"          // the same, by the steps between them
	NeighboursOrder   = "neighbours"        // what others chose who chose the user's objects
	// PlainPrefix begins the name of a strategy's order by affinities alone.
	PlainPrefix = "plain:"
)

// Names of the results of a search, beside those.
const (
	PlainOrder = "plain"
	GivenOrder = "given"
	TunedOrder = "tuned"
)

// SameForAll reports whether the result is of a list that everybody sees. The orders
// of features are none: they follow what each user did last.
func (r BacktestResult) SameForAll() bool {
	return slices.Contains([]string{BestSellers, RecentBestSellers, ShownOrder}, r.Name)
}

// Strategy reports whether the result is of the own ranking of a strategy.
func (r BacktestResult) Strategy() bool {
	return !r.SameForAll() && !strings.HasPrefix(r.Name, PlainPrefix) &&
		!slices.Contains([]string{RandomOrder, PairsOrder, SequenceOrder, NeighboursOrder, PlainOrder}, r.Name)
}

// LiftLimits say in words what a lift is not. They stand below each one that
// people read.
var LiftLimits = []string{
	"This is not a forecast: users chose among what they were shown, so past choices favor the past order.",
	"nDCG is not sales, and users with a single event are left out.",
	"Only an experiment on live traffic proves what an order is worth.",
}

// LiftGuide is the page about what a lift means.
const LiftGuide = "https://github.com/affinityengine/affinity/blob/main/functions/docs/guides/lift.md"

// BacktestLift is what an order is worth over the best list that everybody sees:
// the one of popularity, popularity-recent and baseline with the highest nDCG on
// the same cases.
type BacktestLift struct {
	// Within is the facet whose value the candidates share, as on the page of a
	// category; absent: all objects of the index.
	Within string `json:"within,omitempty"`
	Cases  int    `json:"cases"`
	BacktestGain
}

// Among says in words what was ordered.
func (l BacktestLift) Among() string {
	if l.Within == "" {
		return "in the whole catalog"
	}
	return "within " + l.Within
}

// List says in words which list everybody would see.
func (g BacktestGain) List() string {
	switch g.Over {
	case BestSellers:
		return "the best sellers"
	case RecentBestSellers:
		return "the best sellers of late"
	case ShownOrder:
		return "what was shown"
	}
	return g.Over
}

// Words says what the order is worth, and among what.
func (l BacktestLift) Words() string {
	over := " over showing everybody " + l.List()
	switch {
	case l.Low > 0:
		return l.Percent() + " " + l.Among() + "," + over
	case l.High < 0:
		return l.Percent() + " " + l.Among() + "," + over + ": that list did better"
	}
	return "no lift can be shown " + l.Among() + over + ": " + l.Percent()
}

// Percent says in words how much higher the nDCG is, with the interval.
func (g BacktestGain) Percent() string {
	if g.Ratio == 0 {
		return fmt.Sprintf("%+.4f nDCG (%+.4f to %+.4f)", g.Difference, g.Low, g.High)
	}
	percent := func(ratio float64) float64 { return 100 * (ratio - 1) }
	return fmt.Sprintf("%+.0f %% (%+.0f to %+.0f)", percent(g.Ratio), percent(g.RatioLow), percent(g.RatioHigh))
}

// Lifts returns what an order is worth within the facet and in the whole
// catalog, the smaller lift first. A backtest without the facet has the latter
// alone, and one without the order none.
func (b Backtest) Lifts(order string) (lifts []BacktestLift) {
	add := func(within string, cases int, gains []BacktestGain) {
		for _, g := range gains {
			if g.Name == order {
				lifts = append(lifts, BacktestLift{within, cases, g})
			}
		}
	}
	if w := b.Within; w != nil {
		add(w.Facet, w.Cases, w.Gains)
	}
	add("", b.Cases, b.Gains)
	slices.SortStableFunc(lifts, func(x, y BacktestLift) int {
		if x.Ratio > 0 && y.Ratio > 0 {
			return cmp.Compare(x.Ratio, y.Ratio)
		}
		return cmp.Compare(x.Difference, y.Difference)
	})
	return lifts
}

// Caveat says what the judged candidates are, if they are not those of pages of a
// category.
func (b Backtest) Caveat() string {
	switch w := b.Within; {
	case w == nil:
		return "Hardly any page shows the whole catalog. No facet looks like a category, or none was asked for."
	case w.StandIn:
		return "No facet is named like a category: " + w.Facet + " stands in, by which pages and searches are narrowed."
	}
	return ""
}

// Orders returns the names of the judged strategies: of a search, the one that it
// leads to.
func (j BacktestJob) Orders() (names []string) {
	switch {
	case j.Backtest == nil:
		return nil
	case j.Tune != nil && j.Tune.Recommended:
		return []string{TunedOrder}
	case j.Tune != nil:
		return []string{GivenOrder}
	}
	for _, r := range j.Results {
		if r.Strategy() {
			names = append(names, r.Name)
		}
	}
	return names
}

// Lifts returns the lifts of the first of Orders (see Backtest.Lifts), or none
// until the job is done.
func (j BacktestJob) Lifts() []BacktestLift {
	orders := j.Orders()
	if len(orders) == 0 {
		return nil
	}
	return j.Backtest.Lifts(orders[0])
}
