package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
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
	Results []result
	Verdict []string // in words
	Draft   string   // the strategy that a tuning found, as JSON; empty: none
}

// result is a line of the report.
type result struct {
	api.BacktestResult
	Title string // what Name stands for
	Share float64
	From  float64 // of the interval, as shares of the highest bound
	To    float64
	Gain  string // over popularity
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
	highest, popularity := 0.0, 0.0
	for _, x := range r.Test.Results {
		highest = max(highest, x.NDCGHigh, x.NDCG)
		if x.Name == "popularity" {
			popularity = x.NDCG
		}
	}
	for _, x := range r.Test.Results {
		line := result{BacktestResult: x, Title: titleOf(x.Name), Own: !isBaseline(x.Name)}
		if highest > 0 {
			line.Share, line.From, line.To = x.NDCG/highest, x.NDCGLow/highest, x.NDCGHigh/highest
		}
		if popularity > 0 && x.Name != "popularity" {
			line.Gain = change(x.NDCG/popularity - 1)
		}
		r.Results = append(r.Results, line)
		if line.Own && !strings.HasPrefix(x.Name, "plain:") && popularity > 0 {
			r.Verdict = append(r.Verdict, fmt.Sprintf("%s: nDCG is %s the order by popularity (nDCG@%d %s against %s).",
				line.Title, above(x.NDCG/popularity-1), r.Test.At, score(x.NDCG), score(popularity)))
		}
	}
}

// judge says what a tuning found.
func (r *report) judge() {
	t := r.Test.Tune
	if t.Recommended {
		r.Verdict = append([]string{fmt.Sprintf(
			"The tuned strategy is better than the given one on users whom the search has not seen: its nDCG is %s "+
				"higher (95 %% interval: %s to %s).",
			score(t.Tuned.NDCG-t.Given.NDCG), score(t.GainLow), score(t.GainHigh))}, r.Verdict...)
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

func isBaseline(name string) bool { return name == "random" || name == "popularity" || name == "pairs" }

// titleOf says what a result is of.
func titleOf(name string) string {
	switch name {
	case "random":
		return "Random order"
	case "popularity":
		return "Best sellers"
	case "pairs":
		return "What others chose next"
	}
	if of, plain := strings.CutPrefix(name, "plain:"); plain {
		return "Profile alone, " + shown(of)
	}
	return "Ranking of " + shown(name)
}

// change writes a ratio as a change in percent.
func change(ratio float64) string {
	text := strconv.FormatFloat(math.Abs(100*ratio), 'f', 0, 64) + " %"
	if ratio < 0 {
		return "−" + text
	}
	return "+" + text
}

// above writes a ratio in words.
func above(ratio float64) string {
	text := strconv.FormatFloat(math.Abs(100*ratio), 'f', 0, 64) + " %"
	if ratio < 0 {
		return text + " below"
	}
	return text + " above"
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
