package console_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// The page of experiments shows the arms, stops one and promotes an arm of the next. The page of the strategy says that
// one runs.
func TestExperimentPages(t *testing.T) {
	s := functiontest.Start(t)
	const key = "strategist"
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App,
		config.Key{Hash: auth.Hash(key), ACL: []string{auth.Recommendation, auth.Settings}}))
	for _, impact := range []int{20, 80} {
		functiontest.SetStrategy(t, s, strategy.Strategy{PersonalizationImpact: impact})
	}
	x := config.ExperimentsOf(s.Backends.CachedConfig)
	start := func(name string) {
		t.Helper()
		_, _, err := x.Set(t.Context(), functiontest.App, experiment.Experiment{Name: name, Coverage: 1, Metric: "clicks",
			Hypothesis: "<more> clicks", EndAt: time.Now().Add(time.Hour), Arms: []experiment.Arm{
				{Name: "less", Strategy: 1, Weight: 0.3}, {Name: "more", Strategy: 2, Weight: 0.7}}}, s.Backends.Now())
		must.Succeed(t, err)
	}
	const path = "/console/strategy/experiments"
	b := strategistOf(t, s, key)
	b.get(path).shows(t, "No experiment yet")
	b.get("/console/strategy").lacks(t, "Until it ends")
	start("impact")
	page := b.get(path)
	page.shows(t, "impact running", "100 % of the users take part. What decides: clicks per user.", "<more> clicks", "less control Version 1 30 %",
		"more Version 2 70 %")
	b.get("/console/strategy").shows(t, "The experiment impact runs: its users get the versions of its arms. Until it ends")
	if other := strategistOf(t, s, "recommendation").get("/console/strategy"); strings.Contains(other.Text, "Until it ends") {
		t.Error("a key without the permission settings sees the experiment")
	}
	form := page.form()
	if answer := b.post(path+"/impact/stop", form); answer.To != path+"?done=experiment-stopped" {
		t.Errorf("stop: %+v", answer)
	}
	b.get(path).shows(t, "impact ended")
	keepReports(t, s)
	b.get(path).lacks(t, "What impact has shown") // the key may not read reports
	admin := strategistOf(t, s, adminKey)
	admin.get(path).shows(t, "What personalization has earned", "Arm personalized earned 12 % more per user than holdout", "2,013 people with an event from 2026-11-01 to 2026-11-20",
		"holdout 413 20 9 410 EUR, 3 USD control personalized 1,600 90 41 2,010 EUR +12.0 % −1.0 % to +27.0 %", "2026-11-10 personalized +20.0 % –",
		"The arms have the people that their weights give (p = 0.43). At this traffic a difference of 5 % shows after 121 more days", "Kept for good: November 2026",
		"What impact has shown", "The arms do not have the people that their weights give (p = less than 0.001): find the cause first.")
	admin.get(path+"?of=holdout&month=2026-11").shows(t, "What personalization has earned in November 2026", "The latest report")
	if answer := admin.get(path + "?of=holdout&month=2026-10"); answer.Status != 404 {
		t.Errorf("a month without a report: %d", answer.Status)
	}
	start("again")
	form = url.Values{"csrf": form["csrf"], "arm": {"less"}}
	if answer := b.post(path+"/again/promote", form); answer.To != path+"?done=experiment-promoted" {
		t.Errorf("promote: %+v", answer)
	}
	b.get(path).shows(t, "again ended", "less control promoted")
	if version, _ := active(t, s); version.PersonalizationImpact != 20 {
		t.Errorf("after the promotion %+v is active", version)
	}
	if answer := b.post(path+"/none/stop", form); answer.Status != 404 {
		t.Errorf("an experiment that is not there: %d", answer.Status)
	}
}

const adminKey = "reader"

// keepReports keeps reports of the holdout, one of a month, and of the experiment impact, and a key that may read them.
func keepReports(t *testing.T, s *stack.Stack) {
	t.Helper()
	must.Succeed(t, s.Backends.Config.PutKey(t.Context(), functiontest.App, config.Key{Hash: auth.Hash(adminKey), ACL: []string{auth.Settings, auth.Admin}}))
	number := func(x float64) *float64 { return &x }
	days := 121
	report := api.ExperimentReport{Experiment: "holdout", From: "2026-11-01", To: "2026-11-20", Metric: "revenue", People: 2013, Days: 20,
		Words: "Arm personalized earned 12 % more per user than holdout; between -1 % and +27 %: not decided.",
		Arms: []api.ReportArm{{Name: "holdout", Users: 413, Clicks: 20, Conversions: 9, Revenue: map[string]float64{"EUR": 410, "USD": 3}},
			{Name: "personalized", Users: 1600, Clicks: 90, Conversions: 41, Revenue: map[string]float64{"EUR": 2009.6}}},
		Lift:        []api.ReportLift{{Arm: "personalized", Over: "holdout", Metric: "revenue", Relative: number(0.12), Low: number(-0.01), High: number(0.27)}},
		SampleRatio: api.SampleRatio{P: 0.43, OK: true}, Power: api.ReportPower{Days: &days, For: 0.05},
		Series: []api.ReportPoint{{Day: "2026-11-10", Arm: "personalized", Relative: number(0.2)},
			{Day: "2026-11-15", Arm: "personalized", Relative: number(0.15), Low: number(-0.05), High: number(0.4)},
			{Day: "2026-11-20", Arm: "personalized", Relative: number(0.12), Low: number(-0.01), High: number(0.27)}}}
	keep := func(month string, r api.ExperimentReport) {
		body, err := json.Marshal(map[string]any{"metric": "revenue", "reports": map[string]any{"revenue": r}})
		must.Succeed(t, err)
		must.Succeed(t, config.ReportsOf(s.Backends.Config).Keep(t.Context(), functiontest.App, config.KeptReport{Experiment: r.Experiment, Month: month, AsOf: s.Backends.Now(), Body: string(body)}))
	}
	keep("", report)
	keep("2026-11", report)
	report.Experiment, report.SampleRatio, report.Power.Days = "impact", api.SampleRatio{}, nil
	keep("", report)
}
