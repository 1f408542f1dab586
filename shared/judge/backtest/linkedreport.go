package backtest

import (
	"context"

	"github.com/affinityengine/affinity/shared/api"
)

// Linked judges the strategies of the report again, with the histories of persons by links: it fills in what
// changes. step is called before each part of the work; nil: it is not. The error is that of ctx.
func (r *Report) Linked(ctx context.Context, given []Given, all []Link,
	step func(what string)) (api.BacktestIdentity, error) {
	out := api.BacktestIdentity{}
	if step == nil {
		step = func(string) {}
	}
	for _, part := range []struct {
		report *Report
		to     **api.BacktestLinked
	}{{r, &out.Whole}, {r.Within, &out.Within}} {
		if part.report == nil {
			continue
		}
		step("links")
		linked, changed, err := part.report.linked(ctx, orders(given), all, step)
		if err != nil {
			return out, err
		}
		if part.report == r {
			out.Changed = changed
		}
		*part.to = linked
	}
	return out, nil
}

// linked compares the orders by tokens of a report with those by persons. It returns nil if no history changes.
func (r *Report) linked(ctx context.Context, rows []Given, all []Link,
	step func(string)) (*api.BacktestLinked, int, error) {
	persons, changes := r.Cases.linked(all)
	changed := func(i int) bool { return changes[i] }
	tokens := r.Cases.Subset(changed)
	if tokens.Len() == 0 {
		return nil, 0, nil
	}
	out := &api.BacktestLinked{}
	var err error
	if out.All, err = r.pair(ctx, persons, rows, step); err != nil {
		return nil, 0, err
	}
	tuning, _ := r.Cases.Split()
	part, err := tokens.Report(ctx, tuning, rows, step)
	if err != nil {
		return nil, 0, err
	}
	pair, err := part.pair(ctx, persons.Subset(changed), rows, step)
	out.Changed = &pair
	return out, tokens.Len(), err
}

// pair compares the orders of a report, by tokens, with those of the same cases with the histories of persons.
func (r *Report) pair(ctx context.Context, persons *Cases, rows []Given, step func(string)) (api.BacktestPair, error) {
	both := &Report{Cases: r.Cases}
	for _, n := range r.Results {
		if (api.BacktestResult{Name: n.Name}).SameForAll() {
			both.Results = append(both.Results, n)
		}
	}
	var gains []api.BacktestGain
	for _, row := range rows {
		name := api.LinkedPrefix + row.Name
		step(name)
		byPersons, err := persons.Judge(ctx, row.Strategy)
		if err == nil {
			err = byPersons.Resample(ctx)
		}
		if err != nil {
			return api.BacktestPair{}, err
		}
		byTokens := r.Find(row.Name)
		both.Results = append(both.Results, Named{Name: row.Name, Result: byTokens}, Named{Name: name, Result: byPersons})
		gains = append(gains, byPersons.Over(byTokens).API(name, row.Name))
	}
	pair := api.BacktestPair{Cases: r.Cases.Len(), Linked: gains}
	pair.Results, pair.Gains = both.list()
	return pair, nil
}

// orders returns the orders of strategies that a report judges: by affinities alone, and by their own ranking.
func orders(given []Given) (rows []Given) {
	for _, g := range given {
		rows = append(rows, Given{api.PlainPrefix + g.Name, Plain(g.Strategy)}, g)
	}
	return rows
}
