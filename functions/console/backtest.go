package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
)

// report is what the page of a backtest or a tuning shows.
type report struct {
	Now     time.Time
	Job     jobLine
	Test    api.BacktestJob
	Verdict []string      // in words
	Tables  []resultTable // within the facet first
	Draft   string        // the strategy that a tuning found, as JSON; empty: none
}

// resultTable are the results of one set of candidates.
type resultTable struct {
	Title   string
	Cases   int
	Over    string // what gains are compared with
	Results []result
}

// result is a line of the report.
type result struct {
	api.BacktestResult
	Title string // what Name stands for
	Share float64
	From  float64 // of the interval, as shares of the highest bound
	To    float64
	Gain  string // over the best list that everybody sees
	Own   bool   // the result of a strategy, not a baseline
}

func loadBacktest(v *visit) (any, error) {
	id := v.PathValue("id")
	v.title = "Backtest"
	test, err := v.engine.Jobs().Backtest(v.Context(), id)
	if err != nil {
		return nil, err
	}
	v.command = backtestCommand(v)
	r := &report{Now: v.now(), Job: backtestJob(test.BacktestSummary), Test: test}
	if test.Backtest != nil {
		r.fill()
	}
	if test.Tune != nil {
		r.judge()
	}
	return r, nil
}

// backtestCommand is the command line that judges a strategy on the engine. A job does not say
// which index it is about.
func backtestCommand(v *visit) string {
	return "affinity backtest --url=" + shellArg(v.console.urlFor(v)) + " --index=INDEX --strategy=strategy.json"
}

// fill makes the lines of the results.
func (r *report) fill() {
	for _, order := range r.Test.Orders() {
		for _, l := range r.Test.Backtest.Lifts(order) {
			r.Verdict = append(r.Verdict, titleOf(order)+": "+long(l.Words())+".")
		}
	}
	if caveat := r.Test.Caveat(); caveat != "" {
		r.Verdict = append(r.Verdict, long(caveat))
	}
	r.Tables = tablesOf(*r.Test.Backtest)
}

// tablesOf makes the tables of a report.
func tablesOf(b api.Backtest) (tables []resultTable) {
	if w := b.Within; w != nil {
		tables = append(tables, newTable("Within "+shown(w.Facet)+", as a page shows it", w.Cases, w.Results, w.Gains))
	}
	return append(tables, newTable("In the whole catalog", b.Cases, b.Results, b.Gains))
}

func newTable(title string, cases int, results []api.BacktestResult, gains []api.BacktestGain) resultTable {
	t := resultTable{Title: title, Cases: cases}
	highest, gained := 0.0, map[string]string{}
	for _, x := range results {
		highest = max(highest, x.NDCGHigh, x.NDCG)
	}
	for _, g := range gains {
		t.Over, gained[g.Name] = g.List(), g.Percent()
	}
	for _, x := range results {
		line := result{BacktestResult: x, Title: titleOf(x.Name), Own: x.Strategy(), Gain: gained[x.Name]}
		if x.HalfLife != "" {
			line.Title += ", half-life " + shown(x.HalfLife)
		}
		if highest > 0 {
			line.Share, line.From, line.To = x.NDCG/highest, x.NDCGLow/highest, x.NDCGHigh/highest
		}
		t.Results = append(t.Results, line)
	}
	return t
}

// Limits say what a lift is not, and Guide where more of it stands.
func (*report) Limits() []string { return api.LiftLimits }

// Guide is the page about what a lift means.
func (*report) Guide() string { return api.LiftGuide }

// judge says what a tuning found.
func (r *report) judge() {
	t, among := r.Test.Tune, ""
	if t.Within != "" {
		among = " within " + shown(t.Within)
	}
	if t.Recommended {
		r.Verdict = append([]string{fmt.Sprintf(
			"The tuned strategy is better than the given one on users whom the search has not seen: its nDCG is %s "+
				"higher%s (95 %% interval: %s to %s).",
			score(t.Tuned.NDCG-t.Given.NDCG), among, score(t.GainLow), score(t.GainHigh))}, r.Verdict...)
	} else {
		r.Verdict = append([]string{"The search has found nothing that is better than the given strategy by more " +
			"than chance. Keep what you have."}, r.Verdict...)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(t.Strategy) == nil {
		r.Draft = b.String()
	}
}

// titleOf says what a result is of.
func titleOf(name string) string {
	switch name {
	case api.RandomOrder:
		return "Random order"
	case api.BestSellers:
		return "Best sellers"
	case api.RecentBestSellers:
		return "Best sellers of late"
	case api.ShownOrder:
		return "What was shown"
	case api.PairsOrder:
		return "What others chose next"
	case api.SequenceOrder:
		return "What others went on to"
	case api.NeighboursOrder:
		return "What the same people chose"
	}
	if of, plain := strings.CutPrefix(name, api.PlainPrefix); plain {
		return "Profile alone, " + shown(of)
	}
	return "Ranking of " + shown(name)
}

// activeVersion returns the active strategy as a backtest names it.
func activeVersion(v *visit) ([]json.RawMessage, error) {
	versions, err := v.engine.Strategies().Versions(v.Context())
	if err != nil {
		return nil, err
	}
	if len(versions.Versions) == 0 {
		return nil, &api.Error{Status: 409, Message: "No strategy is set, so there is nothing to judge: set one first"}
	}
	return []json.RawMessage{json.RawMessage(strconv.FormatInt(versions.Versions[0].Version, 10))}, nil
}
