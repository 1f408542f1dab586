package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/backtests"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/tune"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// backtests are the routes that backtests have in common with other jobs.
func (h handler) backtests() resource[api.BacktestSummary] {
	return resource[api.BacktestSummary]{
		handler: h, runner: h.Backtests.Runner, path: "/1/backtests", noun: "backtest",
		permission: auth.Admin, cancelled: auditlog.BacktestCancel, render: h.summarizeBacktest,
		list:     func(all []api.BacktestSummary) any { return api.Backtests{Backtests: all} },
		detailed: h.renderBacktest,
	}
}

// startBacktest starts a backtest of the app's log.
func (h handler) startBacktest(w http.ResponseWriter, r *http.Request, app config.App, grant auth.Grant) error {
	const want = "an object with no other keys than index, strategies, protocol, at, within, sample, all and tune"
	request, err := readRequest[api.BacktestRequest](w, r, api.MaxBacktestBody, want)
	if err != nil {
		return err
	}
	q, err := h.backtestOf(r, app, request)
	if err != nil {
		return err
	}
	if err := grant.Index(q.Index); err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: grant.Key, Action: auditlog.BacktestStart, Detail: "index " + q.Index}
	j, err := h.jobs.Record(r.Context(), change,
		func() (job.Job, error) { return h.Backtests.Start(r.Context(), app.ID, q) })
	switch {
	case errors.Is(err, backtests.ErrBusy):
		return httpapi.Errorf(http.StatusConflict, "Backtest %s is under way: the app can have one at a time", j.ID)
	case err != nil:
		return err
	}
	return h.backtests().write(w, r, j)
}

// backtestOf checks a request.
func (h handler) backtestOf(r *http.Request, app config.App, request api.BacktestRequest) (backtests.Request, error) {
	q := backtests.Request{Index: request.Index, All: request.All, Options: backtest.Options{
		Protocol: backtest.Protocol(request.Protocol), At: request.At, Within: request.Within, Sample: request.Sample,
	}}
	switch {
	case request.Index == "":
		return q, fault.New(fault.Invalid, "index is required: the objects of one index are ranked")
	case request.Tune != nil:
		if err := h.addTuning(r, app, &request, &q); err != nil {
			return q, err
		}
	case len(request.Strategies) == 0 || len(request.Strategies) > api.MaxBacktestStrategies:
		return q, fault.New(fault.Invalid, "strategies must have 1 to %d entries, got %d", api.MaxBacktestStrategies,
			len(request.Strategies))
	}
	if err := q.Options.Validate(); err != nil {
		return q, err
	}
	for i, text := range request.Strategies {
		given, err := h.strategyOf(r, app, text)
		if err != nil {
			return q, err
		}
		if given.Name == "" {
			given.Name = "strategy " + strconv.Itoa(i+1)
		}
		if err := backtest.Check(given.Strategy); err != nil {
			return q, fault.New(fault.Invalid, "strategies[%d]: %v", i, err)
		}
		q.Given = append(q.Given, given)
	}
	return q, nil
}

// addTuning checks what a request says of a search. It adds the active strategy
// if the request gives none.
func (h handler) addTuning(r *http.Request, app config.App, request *api.BacktestRequest, q *backtests.Request) error {
	q.Trials = cmp.Or(request.Tune.Trials, tune.DefaultTrials)
	switch {
	case q.Trials < 1 || q.Trials > tune.MaxTrials:
		return fault.New(fault.Invalid, "tune.trials must be from 1 to %d, got %d", tune.MaxTrials, q.Trials)
	case len(request.Strategies) > 1:
		return fault.New(fault.Invalid, "strategies must have at most 1 entry with tune, got %d", len(request.Strategies))
	case len(request.Strategies) == 1:
		return nil
	}
	current, err := h.Config.App(r.Context(), app.ID)
	if err != nil {
		return err
	}
	if current.StrategyVersion == 0 {
		return fault.New(fault.Invalid, "the app has no strategy to begin with: set one, or give one in strategies")
	}
	request.Strategies = []json.RawMessage{strconv.AppendInt(nil, current.StrategyVersion, 10)}
	return nil
}

// strategyOf returns the strategy that a request gives: an object, or the
// number of a version. Only a version has a name.
func (h handler) strategyOf(r *http.Request, app config.App, text json.RawMessage) (given backtests.Given, err error) {
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '{' {
		given.Strategy, err = strategy.Decode(text)
		return given, err
	}
	given.Version, err = strconv.ParseInt(string(text), 10, 64)
	if err != nil || given.Version < 1 {
		return given, fault.New(fault.Invalid, "an entry of strategies must be a strategy or the number of a version")
	}
	given.Name = "version " + strconv.FormatInt(given.Version, 10)
	given.Strategy, err = h.Config.StrategyVersion(r.Context(), app.ID, given.Version)
	if errors.Is(err, config.ErrNotFound) {
		return given, fault.New(fault.Invalid, "the app has no version %d of its strategy", given.Version)
	}
	return given, err
}

// summarizeBacktest describes a job without its report.
func (h handler) summarizeBacktest(ctx context.Context, j job.Job) api.BacktestSummary {
	state, fault := api.JobState(j.State), j.Error
	if j.State == job.Done && j.Totals.PlannedUsers == 0 && j.Totals.Counts[job.CountUsers] == 0 {
		state, fault = api.JobFailed, noUsers
	}
	c := job.CountsOf[backtests.Counts](j.Totals.Counts)
	return api.BacktestSummary{
		ID: j.ID, State: state, Users: c.Users, PlannedUsers: j.Totals.PlannedUsers, Events: c.Events,
		StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j), Place: h.jobs.Place(ctx, j),
		Faulty: c.Faulty, Error: fault, Search: backtests.Search(j),
	}
}

// noUsers is why a job without a report is said to have failed.
const noUsers = "the log holds no users"

func (h handler) renderBacktest(ctx context.Context, j job.Job, faults []string) (any, error) {
	answer := api.BacktestJob{BacktestSummary: h.summarizeBacktest(ctx, j)}
	answer.Faults = faults
	if j.State != job.Done {
		return answer, nil
	}
	result, err := h.Backtests.Result(ctx, j)
	switch {
	case errors.Is(err, job.ErrNotFound): // without users there is nothing to do
		answer.State, answer.Error = api.JobFailed, noUsers
		return answer, nil
	case err != nil:
		return answer, fmt.Errorf("read the backtest: %w", err)
	}
	answer.Backtest, answer.Sampled, answer.Tune = &result.Report, result.Share < 1, result.Tune
	if result.Search != nil {
		answer.Search = result.Search
	}
	return answer, nil
}
