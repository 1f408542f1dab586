package backtests

import (
	"context"
	"fmt"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/tune"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Search returns how far the search of a job is, or nil if the job has none.
func Search(j job.Job) *api.TuneSearch {
	p := job.ParamsOf[Params](j)
	if p.Trials == 0 {
		return nil
	}
	return &api.TuneSearch{Trials: int(job.CountsOf[Counts](j.Totals.Counts).Trials), Most: p.Trials}
}

// tune searches from a strategy. At the end of the task's time it fails, since a
// further task could not do better.
func (t *task) tune(ctx context.Context, log *backtest.Log, given strategy.Strategy) (Result, error) {
	whole := t.params.options()
	whole.Within = backtest.None
	cases, err := log.Cases(ctx, given, whole)
	if err != nil {
		return Result{}, err
	}
	searching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	outcome, err := tune.Run(searching, cases, given,
		tune.Options{Trials: t.params.Trials, Within: t.params.Within, Progress: func(p tune.Progress) {
			t.counts.Trials = int64(p.Trials)
			if err := t.progress(job.Progress{Next: fmt.Sprintf("trial %d", p.Trials), Counts: t.counted()}); err != nil {
				stop(err)
			}
			if p.Trials < p.Most && !t.Now().Before(t.until) {
				stop(fault.New(fault.Invalid, "the task's time ended after %d of %d trials on %d cases: use a smaller "+
					"sample or fewer trials",
					p.Trials, p.Most, cases.Len()))
			}
		}})
	if cause := context.Cause(searching); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return Result{}, err
	}
	found, gain := outcome.API(), outcome.Gain.API(api.TunedOrder, api.GivenOrder)
	search := &api.TuneSearch{Trials: outcome.Trials, Most: t.params.Trials, Strategy: &given,
		Cases: outcome.Tuning, Gain: &gain}
	return Result{Report: outcome.Report.API(), Tune: &found, Search: search}, nil
}
