package console

import (
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// lift is what a backtest says a strategy is worth: how much higher than the best list for everybody it
// puts what users turned to next.
type lift struct {
	Percent string // with its sign
	Good    bool   // it is above 0 by more than chance
	Over    string // in words, what the order is compared with
	Among   string // in words, what was ordered
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
		if l := lastLift(test); l != nil {
			l.Ended, l.Path = *b.FinishedAt, "/console/backtests/"+url.PathEscape(b.ID)
			return l
		}
	}
	return nil
}

// lastLift returns what a report says of its strategy: within a category if it was judged there, because
// shops show pages of one kind of thing. nil: the report does not say.
func lastLift(test api.BacktestJob) *lift {
	lifts := test.Lifts()
	if len(lifts) == 0 {
		return nil
	}
	best := lifts[0]
	for _, l := range lifts {
		if l.Within != "" {
			best = l
		}
	}
	if best.Ratio == 0 {
		return nil
	}
	l := &lift{Percent: change(best.Ratio - 1), Over: best.List(), Among: "in the whole catalog", Cases: best.Cases}
	if best.Within != "" {
		l.Among = "within " + shown(best.Within)
	}
	switch l.Good = best.Low > 0; {
	case l.Good:
		l.Says = "more than chance"
	case best.High < 0:
		l.Says = "worse, and not by chance"
	default:
		l.Says = "may be chance"
	}
	return l
}
