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

	"github.com/affinityengine/affinity/shared/api"
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
	// Within is the facet of backtest.Options: the search ranks the candidates of a
	// page of a category, if there is one. None: all objects.
	Within string
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

// Outcome is what a search found. All results are of the untouched slice, with the
// candidates that the search ranked.
type Outcome struct {
	Tuning    int             // cases that the search saw
	Untouched *backtest.Cases // the slice
	// Report judges on that slice with all objects as candidates, and Report.Within
	// within the facet, if the search ranked those.
	Report *backtest.Report
	Trials int // judged
	// Strategy is the best on the tuning part: the given one if none was better.
	Strategy strategy.Strategy
	// Plain is the plain ranking of the given strategy.
	Plain, Given, Tuned *backtest.Result
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
	parts, err := split(cases, o.Within)
	if err != nil {
		return nil, err
	}
	tuning, untouched := parts[0].tuning, parts[0].untouched
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
	return out, out.judge(ctx, parts, given)
}

// judge reads the untouched slice.
func (out *Outcome) judge(ctx context.Context, parts []part, given strategy.Strategy) error {
	rows := []backtest.Given{{Name: api.PlainOrder, Strategy: backtest.Plain(given)},
		{Name: api.GivenOrder, Strategy: given}, {Name: api.TunedOrder, Strategy: out.Strategy}}
	for _, p := range parts {
		r, err := p.untouched.Report(ctx, p.tuning, rows, nil)
		if err != nil {
			return err
		}
		out.Report, r.Within = r, out.Report
	}
	decides := out.Report
	if decides.Within != nil {
		decides = decides.Within
	}
	out.Plain, out.Given = decides.Find(api.PlainOrder), decides.Find(api.GivenOrder)
	out.Tuned = decides.Find(api.TunedOrder)
	out.Gain = out.Tuned.Over(out.Given)
	tuned, base := out.Tuned.ByUser(), out.Given.ByUser()
	for i := range tuned {
		tuned[i] -= base[i]
	}
	var err error
	if out.Chance, err = chance(ctx, tuned); err != nil {
		return err
	}
	out.Recommended = out.Gain.Low > 0 && out.Chance <= maxChance
	return nil
}

// minUntouched is the fewest users with cases in either part: with fewer, an
// interval by bootstrap is narrower than what the cases can say.
const minUntouched = 20

// part is the cases of one set of candidates.
type part struct{ tuning, untouched *backtest.Cases }

// split divides the cases by their users. The part within the facet comes first
// if there is one. A category that was not asked for is left out if too few
// users have a case in it.
func split(cases *backtest.Cases, asked string) (parts []part, err error) {
	within, err := cases.Within(asked)
	if err != nil {
		return nil, err
	}
	for _, c := range []*backtest.Cases{within, cases} {
		if c == nil {
			continue
		}
		tuning, untouched := c.Split()
		if untouched.Users() >= minUntouched && tuning.Users() >= minUntouched {
			parts = append(parts, part{tuning, untouched})
		} else if c == cases || asked != "" {
			return nil, fault.New(fault.Invalid, "too few cases to tune on: %d, of %d users, of whom %d would be left "+
				"untouched; %d are the least of either part",
				c.Len(), c.Users(), untouched.Users(), minUntouched)
		}
	}
	return parts, nil
}
