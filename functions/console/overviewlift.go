package console

import (
	"net/url"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
)

// lift is what a backtest says a strategy is worth: how much higher than best sellers it puts what
// users turned to next.
type lift struct {
	Percent string // with its sign
	Good    bool   // it is above 0 by more than chance
	Over    string // in words, what the order is compared with
	Says    string // whether it may be chance
	Cases   int
	Ended   api.Time
	Path    string // of the report
}

// People are the users with events that count, by the newest build of statistics; 0 if none is done.
func (o *overview) People() int64 {
	for _, b := range o.Crowd.Got.Builds {
		if b.State == api.JobDone {
			return b.Users
		}
	}
	return 0
}

// lastBacktest reads the newest backtest that is done; nil if there is none, or the engine does not answer.
func (o *overview) lastBacktest(v *visit) *lift {
	for _, b := range o.Tests.Got.Backtests {
		if b.State != api.JobDone || b.FinishedAt == nil {
			continue
		}
		test, err := v.engine.Jobs().Backtest(v.Context(), b.ID)
		if err != nil || test.Backtest == nil {
			return nil
		}
		if l := lastLift(*test.Backtest); l != nil {
			l.Ended, l.Path = *b.FinishedAt, "/console/backtests/"+url.PathEscape(b.ID)
			return l
		}
	}
	return nil
}

// lastLift compares the first strategy of a report with the order by popularity: within a category if the
// report has one, because shops show pages of one kind of thing. nil: the report does not say.
func lastLift(test api.Backtest) *lift {
	l, results := &lift{Over: "best sellers", Cases: test.Cases}, test.Results
	if test.Within != nil {
		l.Over = "best sellers of the same " + shown(test.Within.Facet)
		l.Cases, results = test.Within.Cases, test.Within.Results
	}
	var own, popularity *api.BacktestResult
	for i := range results {
		switch r := &results[i]; {
		case r.Name == "popularity":
			popularity = r
		case own == nil && !isBaseline(r.Name) && r.Name != "plain" && !strings.HasPrefix(r.Name, "plain:"):
			own = r
		}
	}
	if own == nil || popularity == nil || popularity.NDCG == 0 {
		return nil
	}
	l.Percent = change(own.NDCG/popularity.NDCG - 1)
	switch l.Good = own.NDCGLow > popularity.NDCGHigh; {
	case l.Good:
		l.Says = "more than chance"
	case own.NDCGHigh < popularity.NDCGLow:
		l.Says = "worse, and not by chance"
	default:
		l.Says = "may be chance"
	}
	return l
}
