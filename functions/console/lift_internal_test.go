package console

import (
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
)

// judgement is a report in which the whole catalog flatters: 3.1 times the best
// sellers, and 1.2 times those of late within the category.
func judgement(order string) api.Backtest {
	results := func(best float64) []api.BacktestResult {
		return []api.BacktestResult{{Name: api.RandomOrder, NDCG: 0.01}, {Name: api.BestSellers, NDCG: 0.1, NDCGHigh: 0.2}, {Name: api.RecentBestSellers, NDCG: best, HalfLife: "1d"},
			{Name: api.PairsOrder, NDCG: 0.2}, {Name: api.PlainPrefix + order, NDCG: 0.1}, {Name: order, NDCG: 0.31}, {Name: "version 3", NDCG: 0.3}}
	}
	gain := func(over string, ratio float64) []api.BacktestGain {
		return []api.BacktestGain{{Name: order, Over: over, Difference: 0.1, Low: 0.05, High: 0.15, Ratio: ratio, RatioLow: ratio - 0.1, RatioHigh: ratio + 0.1}}
	}
	return api.Backtest{Cases: 900, Candidates: 60, At: 10, Results: results(0.05), Gains: gain(api.BestSellers, 3.1),
		Within: &api.BacktestWithin{Facet: "category", Cases: 800, Results: results(0.26), Gains: gain(api.RecentBestSellers, 1.2)}}
}

// The pages of a backtest, of a tuning and of a draft's backtest begin with the lift
// within the category, and say below it what it is not.
func TestLiftsLeadTheReports(t *testing.T) {
	tuned := judgement(api.TunedOrder)
	for path, job := range map[string]api.BacktestJob{
		"/console/backtests/1":          {Backtest: new(judgement("version 2"))},
		"/console/backtests/2":          {Backtest: &tuned, Tune: &api.Tuning{Recommended: true, Within: "category"}},
		"/console/strategy/backtests/1": {Backtest: new(judgement("strategy 1"))},
	} {
		job.BacktestSummary = api.BacktestSummary{ID: "1", State: api.JobDone}
		h := engineOf(t, func(r *http.Request) (int, any) { return http.StatusOK, job })
		cookie, _ := h.login(testKey)
		page := html.UnescapeString(h.do("GET", path, "", as(cookie)).Body.String())
		at := 0
		for _, want := range []string{
			"+20 % (+10 to +30) within category, over showing everybody the best sellers of late.",
			"+210 % (+200 to +220) in the whole catalog, over showing everybody the best sellers.",
			api.LiftLimits[0], api.LiftLimits[1], api.LiftLimits[2], api.LiftGuide,
			"Within category, as a page shows it", "Best sellers of late, half-life 1d", "In the whole catalog",
		} {
			i := strings.Index(page[at:], want)
			if i < 0 {
				t.Fatalf("%s lacks %q after byte %d:\n%s", path, want, at, page)
			}
			at += i
		}
	}
}

// A report without a category has one table, and its lift is that of the whole catalog.
func TestReportWithoutCategory(t *testing.T) {
	b := judgement("version 2")
	b.Within = nil
	h := engineOf(t, func(r *http.Request) (int, any) {
		return http.StatusOK, api.BacktestJob{BacktestSummary: api.BacktestSummary{ID: "1", State: api.JobDone}, Backtest: &b}
	})
	cookie, _ := h.login(testKey)
	page := h.do("GET", "/console/backtests/1", "", as(cookie)).Body.String()
	if strings.Contains(page, "ithin category") || !strings.Contains(page, "in the whole catalog, over showing everybody") || !strings.Contains(page, "Hardly any page shows the whole catalog") {
		t.Errorf("the page is %s", page)
	}
}
