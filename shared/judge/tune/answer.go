package tune

import "github.com/affinityengine/affinity/shared/api"

// API returns the outcome as answers and files hold it.
func (out *Outcome) API() api.Tuning {
	report := out.Report.API()
	t := api.Tuning{GainLow: out.Gain.Low, GainHigh: out.Gain.High, Recommended: out.Recommended, Strategy: out.Strategy}
	results := report.Results
	if w := report.Within; w != nil {
		t.Within, results = w.Facet, w.Results
	}
	for _, r := range results {
		switch r.Name {
		case api.PlainOrder:
			t.Plain = r
		case api.GivenOrder:
			t.Given = r
		case api.TunedOrder:
			t.Tuned = r
		}
	}
	order := api.GivenOrder
	if out.Recommended {
		order = api.TunedOrder
	}
	t.Lifts = report.Lifts(order)
	return t
}
