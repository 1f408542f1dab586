package measure

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/judge/backtest"
	"github.com/affinityengine/affinity/shared/judge/tune"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// Guard counts how often tuning recommends a strategy where none can help: on
// cases whose relevant objects are replaced by as many that are drawn uniformly
// from the candidates.
type Guard struct {
	Runs, Trials, Cases int
	Seed                uint64 // of the first run; the others count up
	// Files to draw on, as those of an import. Without Events: the simulated shop of
	// `affinity demo`.
	Index, Objects, Strategy string
	Events                   []string
	Common
}

// GuardBar is the largest share of runs that may recommend.
const GuardBar = 0.05

// GuardReport is the outcome. --json prints it as it is.
type GuardReport struct {
	Machine     Machine `json:"machine"`
	Runs        int     `json:"runs"`
	Trials      int     `json:"trials"` // of each run
	Cases       int     `json:"cases"`  // of each run, both parts
	Recommended int     `json:"recommended"`
	Share       float64 `json:"share"`
	// ShareLow and ShareHigh are the 95 % interval of Share, by Wilson.
	ShareLow  float64 `json:"shareLow"`
	ShareHigh float64 `json:"shareHigh"`
	Bar       float64 `json:"bar"`
	// Worse is how many gains had an interval below 0.
	Worse int `json:"worse"`
	// Changed is how many searches found a strategy that was better on their part.
	Changed int `json:"changed"`
	// FoundGain is the mean gain in nDCG on the part of the search, MeanGain that on
	// the untouched slice, which chance makes 0.
	FoundGain float64 `json:"foundGain"`
	MeanGain  float64 `json:"meanGain"`
	Seconds   float64 `json:"seconds"`
}

// Check returns a FlagError for a value out of range.
func (o Guard) Check() error {
	switch {
	case o.Runs < 1:
		return flagf("--runs %d: must be 1 or more", o.Runs)
	case o.Trials < 1 || o.Trials > tune.MaxTrials:
		return flagf("--trials %d: must be 1 to %d", o.Trials, tune.MaxTrials)
	case o.Cases < 1:
		return flagf("--cases %d: must be 1 or more", o.Cases)
	case len(o.Events) > 0 && (o.Objects == "" || o.Strategy == ""):
		return flagf("--events needs --objects and --strategy")
	case len(o.Events) == 0 && (o.Objects != "" || o.Strategy != ""):
		return flagf("--objects and --strategy need --events")
	}
	return nil
}

// Run runs the campaign.
func (o Guard) Run(ctx context.Context, _ Starter) (GuardReport, error) {
	if err := o.Check(); err != nil {
		return GuardReport{}, err
	}
	log, given, err := o.read(ctx)
	if err != nil {
		return GuardReport{}, err
	}
	all, err := log.Cases(ctx, given, backtest.Options{Protocol: backtest.Rolling})
	if err != nil {
		return GuardReport{}, err
	}
	if all.Len() < o.Cases {
		return GuardReport{}, flagf("--cases %d: the log has %d", o.Cases, all.Len())
	}
	report := GuardReport{Machine: machine(), Runs: o.Runs, Trials: o.Trials, Cases: o.Cases, Bar: GuardBar}
	begun := time.Now()
	for run := range o.Runs {
		if run%10 == 0 {
			o.progress("run %d of %d, %d recommended", run, o.Runs, report.Recommended)
		}
		if err := report.add(ctx, all, given, o, o.Seed+uint64(run)); err != nil {
			return GuardReport{}, fmt.Errorf("run %d: %w", run, err)
		}
	}
	report.Seconds = time.Since(begun).Seconds()
	report.Share = float64(report.Recommended) / float64(o.Runs)
	report.ShareLow, report.ShareHigh = wilson(report.Recommended, o.Runs)
	return report, nil
}

// add adds one run, with cases, relevant objects and search of its own.
func (r *GuardReport) add(ctx context.Context, all *backtest.Cases, given strategy.Strategy, o Guard,
	seed uint64) error {
	cases := choose(all, o.Cases, seed).RandomRelevant(seed)
	var first, best float64
	outcome, err := tune.Run(ctx, cases, given,
		tune.Options{Trials: o.Trials, Seed: seed, Progress: func(p tune.Progress) {
			if p.Trials == 1 {
				first = p.Best
			}
			best = p.Best
		}})
	if err != nil {
		return err
	}
	if outcome.Recommended {
		r.Recommended++
	}
	if outcome.Gain.High < 0 {
		r.Worse++
	}
	if best > first {
		r.Changed++
	}
	r.FoundGain += (best - first) / float64(o.Runs)
	r.MeanGain += outcome.Gain.Difference / float64(o.Runs)
	return nil
}

// choose returns n of the cases, chosen by a hash of their keys and the seed.
func choose(all *backtest.Cases, n int, seed uint64) *backtest.Cases {
	type keyed struct {
		hash uint64
		at   int
	}
	order := make([]keyed, all.Len())
	for i := range order {
		order[i] = keyed{scramble(all.Key(i) ^ scramble(seed+1)), i}
	}
	slices.SortFunc(order, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.at, b.at)) })
	chosen := make(map[int]bool, n)
	for _, k := range order[:n] {
		chosen[k.at] = true
	}
	return all.Subset(func(i int) bool { return chosen[i] })
}

// scramble is the finalizer of MurmurHash3.
func scramble(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// wilson returns the 95 % interval of a share.
func wilson(hits, n int) (low, high float64) {
	const z = 1.96
	p, m := float64(hits)/float64(n), float64(n)
	middle := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (middle-half)/(1+z*z/m)), min(1, (middle+half)/(1+z*z/m))
}

// Print writes the report as text.
func (r GuardReport) Print(out io.Writer) error {
	verdict := "below"
	if r.Share > r.Bar {
		verdict = "above"
	}
	_, err := fmt.Fprintf(out, "%d runs of %d trials on %d cases with random relevant objects, %.0f s\n"+
		"recommended: %d, %.1f %% (%.1f to %.1f): %s the bar of %.0f %%\n"+
		"an interval below 0: %d; a better strategy on the part of the search: %d\n"+
		"mean gain in nDCG: %+.4f on the part of the search, %+.4f on the untouched slice\n",
		r.Runs, r.Trials, r.Cases, r.Seconds, r.Recommended, 100*r.Share, 100*r.ShareLow, 100*r.ShareHigh, verdict, 100*r.Bar,
		r.Worse, r.Changed, r.FoundGain, r.MeanGain)
	return err
}
