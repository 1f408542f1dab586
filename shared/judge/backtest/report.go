package backtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/rank/crowd"
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

// Report holds the results of orders on the same cases.
type Report struct {
	Cases   *Cases
	Results []Named // baselines, then strategies
	// Within is the report within a facet; nil without one. Its own Within is nil.
	Within *Report
}

// Named is a result with the name of what was judged.
type Named struct {
	Name     string
	HalfLife string // of popularity-recent, as it was chosen
	*Result
}

// Judge judges the baselines, and the plain and the own ranking of each
// strategy: with all objects as candidates, and within a facet (see
// Options.Within). The first strategy defines the cases. Before each result it
// calls step with the share that is done; step may be nil.
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
	rows := orders(given)
	at, steps := 0, 1
	tick := func(what string) {
		if step != nil {
			step(what, float64(at)/float64(steps))
		}
		at++
	}
	tick("cases")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	whole := o
	whole.Within = None
	c, err := l.Cases(ctx, given[0].Strategy, whole)
	if err != nil {
		return nil, err
	}
	for _, g := range given {
		if err := l.Check(g.Strategy); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	within, err := c.Within(o.Within)
	if err != nil {
		return nil, err
	}
	steps += c.steps(rows) + 1
	if within != nil {
		steps *= 2
	}
	return c.judgeBoth(ctx, within, rows, tick)
}

// judgeBoth judges random orders, the baselines and the strategies on all cases and on those
// within a facet, unless these are nil.
func (c *Cases) judgeBoth(ctx context.Context, within *Cases, rows []Given, tick func(string)) (r *Report, err error) {
	for _, cases := range []*Cases{within, c} {
		if cases == nil {
			continue
		}
		narrow := r
		tick(api.RandomOrder)
		random, err := cases.Random(ctx)
		if err == nil {
			err = random.Resample(ctx)
		}
		if err != nil {
			return nil, err
		}
		tuning, _ := cases.Split()
		if r, err = cases.Report(ctx, tuning, rows, tick); err != nil {
			return nil, err
		}
		r.Results = append([]Named{{Name: api.RandomOrder, Result: random}}, r.Results...)
		r.Within = narrow
	}
	return r, nil
}

// steps is how often Report calls tick.
func (c *Cases) steps(rows []Given) int {
	if c.log.shown != nil {
		return len(rows) + 6
	}
	return len(rows) + 5
}

// Report judges the baselines and the own ranking of each strategy. The half-life
// of popularity-recent is the one that does best on the tuning cases, or on all
// cases if those are none. tick is called before each result; nil: it is not.
func (c *Cases) Report(ctx context.Context, tuning *Cases, rows []Given, tick func(string)) (*Report, error) {
	if tick == nil {
		tick = func(string) {}
	}
	if tuning.Len() == 0 {
		tuning = c
	}
	r := &Report{Cases: c}
	var err error
	var chosen recency
	add := func(name string, judge func() (*Result, error)) {
		if err == nil {
			tick(name)
			err = ctx.Err()
		}
		if err != nil {
			return
		}
		var result *Result
		if result, err = judge(); err == nil {
			err = result.Resample(ctx) // part of the work that tick announces
			r.Results = append(r.Results, Named{Name: name, Result: result})
		}
	}
	add(api.BestSellers, func() (*Result, error) { return c.Popularity(ctx) })
	add(api.RecentBestSellers, func() (*Result, error) {
		var err error
		if chosen, err = tuning.chooseRecency(ctx); err != nil {
			return nil, err
		}
		return c.recent(ctx, chosen)
	})
	if c.log.shown != nil {
		add(api.ShownOrder, func() (*Result, error) { return c.shownList(ctx) })
	}
	add(api.PairsOrder, func() (*Result, error) { return c.Pairs(ctx) })
	add(api.SequenceOrder, func() (*Result, error) { return c.alone(ctx, rows[0].Strategy, crowd.Sequence) })
	add(api.NeighboursOrder, func() (*Result, error) { return c.alone(ctx, rows[0].Strategy, crowd.Together) })
	for _, g := range rows {
		add(g.Name, func() (*Result, error) { return c.Judge(ctx, g.Strategy) })
	}
	if err != nil {
		return nil, err
	}
	r.Results[1].HalfLife = chosen.name
	return r, nil
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
	}
	b.Results, b.Gains = r.list()
	if w := r.Within; w != nil {
		facet := w.Cases.options.Within
		b.Within = &api.BacktestWithin{Facet: facet, StandIn: standsIn(facet), Cases: w.Cases.Len()}
		b.Within.Results, b.Within.Gains = w.list()
	}
	return b
}

func (r *Report) list() (list []api.BacktestResult, gains []api.BacktestGain) {
	var best Named
	for _, n := range r.Results {
		low, high := n.Interval()
		result := api.BacktestResult{Name: n.Name, HalfLife: n.HalfLife, NDCG: n.NDCG, HitRate: n.HitRate, MRR: n.MRR,
			Coverage: n.Coverage, NDCGLow: low, NDCGHigh: high}
		list = append(list, result)
		if result.SameForAll() && (best.Result == nil || n.NDCG > best.NDCG) {
			best = n
		}
	}
	for _, n := range r.Results {
		if n.Name != best.Name {
			gains = append(gains, n.Over(best.Result).API(n.Name, best.Name))
		}
	}
	return list, gains
}

// API returns the gain of one order over another as answers and files hold it.
func (g Gain) API(name, over string) api.BacktestGain {
	return api.BacktestGain{Name: name, Over: over, Difference: g.Difference, Low: g.Low, High: g.High,
		Ratio: g.Ratio, RatioLow: g.RatioLow, RatioHigh: g.RatioHigh}
}
