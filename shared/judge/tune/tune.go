// Package tune searches the strategy that would have ranked best what users
// turned to next, by the judgements of package backtest.
//
// It splits the cases in two. The search sees one part and compares as many
// strategies on it as it is allowed to. The other part, the untouched slice,
// is read once, at the end: the best of many is flattered by the cases that
// chose it, and only cases that did not can say what it is worth. A strategy is
// recommended if the 95 % interval of its gain on that slice lies above 0 and a
// sign-flip test agrees.
//
// The package does no I/O and keeps nothing. Equal input gives an equal
// result.
package tune

import (
	"context"
	"slices"

	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Limits and defaults of Options.
const (
	DefaultTrials = 64
	MaxTrials     = 300
)

// Options say how to search.
type Options struct {
	// Trials is the most strategies to judge on the tuning part: 1 to MaxTrials,
	// 0 for DefaultTrials.
	Trials int
	// Seed of the search. The same seed gives the same strategies.
	Seed uint64
	// Progress is called before the first trial and after each. Nil: nothing.
	Progress func(Progress)
}

// Progress is how far a search is.
type Progress struct {
	Trials, Most int     // judged so far, and the most that will be
	Best         float64 // nDCG of the best on the tuning part; 0 before the first
}

// Outcome is what a search found. All results are of the untouched slice.
type Outcome struct {
	Tuning    int             // cases that the search saw
	Untouched *backtest.Cases // the slice
	Trials    int             // judged
	// Strategy is the best on the tuning part: the given one if none was better.
	Strategy strategy.Strategy
	// Plain is the plain ranking of the given strategy.
	Plain, Given, Tuned *backtest.Result
	// Popularity and Pairs are the baselines.
	Popularity, Pairs *backtest.Result
	// Gain is that of Tuned over Given.
	Gain backtest.Gain
	// Chance is how likely a gain as high is where both rank equally well.
	Chance float64
	// Recommended is whether the interval of Gain lies above 0 and Chance is at most
	// 2.5 %.
	Recommended bool
}

// Run searches. The error is a *fault.Error that says why nothing can be tuned,
// or that of the context.
func Run(ctx context.Context, cases *backtest.Cases, given strategy.Strategy, o Options) (*Outcome, error) {
	if o.Trials == 0 {
		o.Trials = DefaultTrials
	}
	if o.Trials < 1 || o.Trials > MaxTrials {
		return nil, fault.New(fault.Invalid, "the trials must be from 1 to %d, got %d", MaxTrials, o.Trials)
	}
	if err := backtest.Check(given); err != nil {
		return nil, err
	}
	if err := cases.Log().Check(given); err != nil {
		return nil, err
	}
	tuning, untouched, err := split(cases)
	if err != nil {
		return nil, err
	}
	s := newSpace(cases.Log(), given)
	search := newSearch(ctx, s, func(candidate strategy.Strategy) (float64, error) {
		r, err := tuning.Judge(ctx, candidate)
		if err != nil {
			return 0, err
		}
		return r.NDCG, nil
	}, o)
	if err := search.run(); err != nil {
		return nil, err
	}
	out := &Outcome{Tuning: tuning.Len(), Untouched: untouched, Trials: search.trials, Strategy: given}
	if !slices.Equal(search.best, s.starts[0]) {
		out.Strategy = s.strategy(search.best)
	}
	return out, out.judge(ctx, given)
}

// judge reads the untouched slice.
func (out *Outcome) judge(ctx context.Context, given strategy.Strategy) (err error) {
	untouched := out.Untouched
	for _, j := range []struct {
		s  strategy.Strategy
		to **backtest.Result
	}{{backtest.Plain(given), &out.Plain}, {given, &out.Given}, {out.Strategy, &out.Tuned}} {
		if *j.to, err = untouched.Judge(ctx, j.s); err != nil {
			return err
		}
	}
	if out.Popularity, err = untouched.Popularity(ctx); err != nil {
		return err
	}
	if out.Pairs, err = untouched.Pairs(ctx); err != nil {
		return err
	}
	for _, r := range []*backtest.Result{out.Popularity, out.Pairs, out.Plain, out.Given, out.Tuned} {
		if err := r.Resample(ctx); err != nil {
			return err
		}
	}
	out.Gain = out.Tuned.Over(out.Given)
	tuned, base := out.Tuned.ByUser(), out.Given.ByUser()
	for i := range tuned {
		tuned[i] -= base[i]
	}
	if out.Chance, err = chance(ctx, tuned); err != nil {
		return err
	}
	out.Recommended = out.Gain.Low > 0 && out.Chance <= maxChance
	return nil
}

// The names of results in a report.
const (
	namePlain = "plain"
	NameGiven = "given"
	nameTuned = "tuned"
)

// Report returns the results in the form of a backtest.
func (out *Outcome) Report() *backtest.Report {
	return &backtest.Report{Cases: out.Untouched, Results: []backtest.Named{
		{Name: backtest.NamePopularity, Result: out.Popularity}, {Name: backtest.NamePairs, Result: out.Pairs},
		{Name: namePlain, Result: out.Plain}, {Name: NameGiven, Result: out.Given}, {Name: nameTuned, Result: out.Tuned},
	}}
}

// tuningShare is the share of the cases that the search sees, in percent.
const tuningShare = 70

// minUntouched is the fewest users with cases in either part: with fewer, an
// interval by bootstrap is narrower than what the cases can say.
const minUntouched = 20

// split divides the cases by a hash of their users, which other users do not
// change.
func split(cases *backtest.Cases) (tuning, untouched *backtest.Cases, err error) {
	part := func(tuned bool) *backtest.Cases {
		return cases.Subset(func(i int) bool { return mix(cases.UserKey(i))%100 < tuningShare == tuned })
	}
	tuning, untouched = part(true), part(false)
	if untouched.Users() < minUntouched || tuning.Users() < minUntouched {
		return nil, nil, fault.New(fault.Invalid,
			"too few cases to tune on: %d, of %d users, of whom %d would be left untouched; %d are the least of either part",
			cases.Len(), cases.Users(), untouched.Users(), minUntouched)
	}
	return tuning, untouched, nil
}

// mix returns another hash of a hash. The cases of a sample are those with the
// lowest keys, so the keys themselves must not split them. It is the finalizer
// of SplitMix64 after a step.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
