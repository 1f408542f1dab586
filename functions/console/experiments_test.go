package console_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
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
