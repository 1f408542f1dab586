package tune

import (
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/judge/backtest"
)

// API returns the outcome as answers and files hold it.
func (out *Outcome) API() api.Tuning {
	t := api.Tuning{GainLow: out.Gain.Low, GainHigh: out.Gain.High, Recommended: out.Recommended, Strategy: out.Strategy}
	for _, r := range out.Report().API().Results {
		switch r.Name {
		case namePlain:
			t.Plain = r
		case NameGiven:
			t.Given = r
		case nameTuned:
			t.Tuned = r
		}
	}
	return t
}

// Gains returns the gains of the report's results over popularity, then that of
// the tuned strategy over the given one.
func (out *Outcome) Gains() []api.BacktestGain {
	var gains []api.BacktestGain
	add := func(name, over string, g backtest.Gain) {
		gains = append(gains, api.BacktestGain{Name: name, Over: over, Difference: g.Difference, Low: g.Low, High: g.High,
			Ratio: g.Ratio, RatioLow: g.RatioLow, RatioHigh: g.RatioHigh})
	}
	for _, n := range out.Report().Results {
		if n.Name != backtest.NamePopularity {
			add(n.Name, backtest.NamePopularity, n.Over(out.Popularity))
		}
	}
	add(nameTuned, NameGiven, out.Gain)
	return gains
}
