package backtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Given is a strategy to judge, with the name that the report gives it.
type Given struct {
	Name     string
	Strategy strategy.Strategy // valid
}

// Dates returns the attributes of objects by which the freshness of the
// rankings goes.
func Dates(given []Given) (attributes []string) {
	for _, g := range given {
		if f := g.Strategy.RankingOrDefault().Freshness; f.Weight > 0 && !slices.Contains(attributes, f.Attribute) {
			attributes = append(attributes, f.Attribute)
		}
	}
	return attributes
}

// Report judges the baselines and strategies on the same cases.
type Report struct {
	Cases   *Cases
	Results []Named // baselines, then plain:NAME and NAME of each strategy
	// Within is the report with the candidates of Options.Within; nil without
	// that option. Its own Within is nil.
	Within *Report
}

// Named is a result with the name of what was judged.
type Named struct {
	Name string
	*Result
}

// PlainPrefix begins the name of a strategy's plain ranking.
const PlainPrefix = "plain:"

// Judge judges the baselines, and the plain and the own ranking of each
// strategy. The first one defines the cases. With Options.Within it judges
// twice: all objects, and within the facet. Before each result it calls step
// with the share that is done; step may be nil.
//
// An error is a *fault.Error if the log or a strategy cannot be judged, or that
// of ctx.
func (l *Log) Judge(ctx context.Context, given []Given, o Options,
	step func(what string, done float64)) (*Report, error) {
	if len(given) == 0 {
		return nil, refuse("a backtest needs a strategy")
	}
	for _, g := range given {
		if err := Check(g.Strategy); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	runs := 1
	if o.Within != "" {
		runs = 2
	}
	whole := o
	whole.Within = ""
	at := 0
	tick := func(what string) error {
		if step != nil {
			step(what, float64(at)/float64(runs*(4+2*len(given))))
		}
		at++
		return ctx.Err()
	}
	r, err := l.report(ctx, given, whole, tick)
	if err != nil || runs == 1 {
		return r, err
	}
	r.Within, err = l.report(ctx, given, o, tick)
	return r, err
}

func (l *Log) report(ctx context.Context, given []Given, o Options, tick func(string) error) (*Report, error) {
	if err := tick("cases"); err != nil {
		return nil, err
	}
	c, err := l.Cases(ctx, given[0].Strategy, o)
	if err != nil {
		return nil, err
	}
	for _, g := range given {
		if err := l.Check(g.Strategy); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	r := &Report{Cases: c}
	add := func(name string, judge func() (*Result, error)) {
		if err == nil {
			err = tick(name)
		}
		if err != nil {
			return
		}
		var result *Result
		if result, err = judge(); err == nil {
			err = result.Resample(ctx) // part of the work that tick announces
			r.Results = append(r.Results, Named{name, result})
		}
	}
	add(nameRandom, func() (*Result, error) { return c.Random(ctx) })
	add(NamePopularity, func() (*Result, error) { return c.Popularity(ctx) })
	add(NamePairs, func() (*Result, error) { return c.Pairs(ctx) })
	for _, g := range given {
		add(PlainPrefix+g.Name, func() (*Result, error) { return c.Judge(ctx, Plain(g.Strategy)) })
		add(g.Name, func() (*Result, error) { return c.Judge(ctx, g.Strategy) })
	}
	return r, err
}

// Find returns the result of a name, or nil.
func (r *Report) Find(name string) *Result {
	for _, n := range r.Results {
		if n.Name == name {
			return n.Result
		}
	}
	return nil
}

// API returns the report as answers and files hold it.
func (r *Report) API() api.Backtest {
	b := api.Backtest{
		Cases: r.Cases.Len(), Candidates: r.Cases.Candidates(), Cut: api.AtMillis(r.Cases.Cut()), At: r.Cases.At(),
		Results: r.list(),
	}
	if w := r.Within; w != nil {
		b.Within = &api.BacktestWithin{Facet: w.Cases.options.Within, Cases: w.Cases.Len(), Results: w.list()}
	}
	return b
}

func (r *Report) list() []api.BacktestResult {
	list := make([]api.BacktestResult, len(r.Results))
	for i, n := range r.Results {
		low, high := n.Interval()
		list[i] = api.BacktestResult{
			Name: n.Name, NDCG: n.NDCG, HitRate: n.HitRate, MRR: n.MRR, Coverage: n.Coverage, NDCGLow: low, NDCGHigh: high,
		}
	}
	return list
}
