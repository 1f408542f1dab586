package rank_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// between starts an experiment between two versions of the strategy, in which users are in these arms.
func between(t testing.TB, c *config.Cached, now time.Time, versions [2]int64, users ...string) experiment.Experiment {
	t.Helper()
	e := experiment.Experiment{Name: "popular", Coverage: 1, Metric: "clicks", Arms: []experiment.Arm{
		{Name: "as-is", Strategy: versions[0], Weight: 0.5}, {Name: "popular", Strategy: versions[1], Weight: 0.5}}}
	inArms := func() bool {
		for i, user := range users {
			if arm, _ := e.Arm(user); arm != i {
				return false
			}
		}
		return true
	}
	for n := 0; e.Seed == "" || !inArms(); n++ {
		e.Seed = fmt.Sprint("seed ", n)
	}
	e, _, err := config.ExperimentsOf(c).Set(t.Context(), functiontest.App, e, now)
	must.Succeed(t, err)
	return e
}

// The users of an arm get the orders, feeds, recommendations and boosts of its strategy, as if it were the active one.
// Who is in none, held out, or asks for a version or a draft, is not in the answer.
func TestArms(t *testing.T) {
	b := newBoutique(t)
	b.view(t, "bob", 2*day, "o0", "o1")
	c, h := b.Backends.CachedConfig, rank.New(b.Backends.ForRank())
	const key = "recommendation"
	list := `{"userToken":"%s","index":"i","objectIDs":["o0","o1","o2","o3","o4"]%s}`
	ask := func(user, options string) api.RankAnswer { return ranked(t, h, fmt.Sprintf(list, user, options)) }
	recommended := func(user string) (answer api.RecommendAnswer) {
		_, text := functiontest.Call(h, key, "POST", "/1/recommend", `{"model":"for-you","index":"i","userToken":"`+user+`"}`)
		must.Succeed(t, json.Unmarshal([]byte(text), &answer))
		return answer
	}
	app, err := c.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	control, weight := app.StrategyVersion, 100
	other := app.Strategy
	other.PersonalizationImpact = 100 - other.PersonalizationImpact/2
	other.Ranking = &strategy.Ranking{Popularity: &strategy.PopularityRanking{Weight: &weight}, Session: &strategy.SessionRanking{Weight: new(int)}}
	app, _, err = c.SetStrategy(t.Context(), functiontest.App, other)
	must.Succeed(t, err)
	treated := app.StrategyVersion
	wantOrder, wantBoost, wantRecommended := ask("bob", ""), boosted(t, h, "/1/boosts/bob?engine=algolia"), recommended("bob")
	back := app.Strategy
	back.PersonalizationImpact, back.Ranking = 1, nil
	_, _, err = c.SetStrategy(t.Context(), functiontest.App, back)
	must.Succeed(t, err)

	e := between(t, c, b.Backends.Now(), [2]int64{control, treated}, "ann", "bob")
	in := &api.InArm{Name: "popular", Arm: "popular"}
	same := func(what string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got, near, cmp.FilterPath(func(p cmp.Path) bool {
			s := p.String()
			return s == "ID" || s == "Took" || s == "AsOf" || s == "ScoringVersion"
		}, cmp.Ignore())); diff != "" {
			t.Errorf("%s of an arm, and of its strategy (-active +arm):\n%s", what, diff)
		}
	}
	wantOrder.Experiment, wantBoost.Experiment, wantRecommended.Experiment = in, in, in
	same("the order", ask("bob", ""), wantOrder)
	same("the boost", boosted(t, h, "/1/boosts/bob?engine=algolia"), wantBoost)
	same("the recommendation", recommended("bob"), wantRecommended)
	if got := ask("ann", ""); got.StrategyVersion != control || got.Experiment == nil || got.Experiment.Arm != "as-is" {
		t.Errorf("ann gets %+v of strategy %d", got.Experiment, got.StrategyVersion)
	}
	for _, options := range []string{fmt.Sprintf(`,"strategy":%d`, treated), fmt.Sprintf(`,"strategy":%d`, treated+1),
		`,"draft":{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":7}],"facetsScoring":[{"facetName":"brand","score":9}],"personalizationImpact":80}`} {
		if got := ask("bob", options); got.Experiment != nil {
			t.Errorf("%s: in %+v", options, got.Experiment)
		}
	}
	functiontest.Check(t, h, functiontest.Ask("search", "POST", "/1/rank", fmt.Sprintf(list, "bob", ""), 403, ""))
	_, err = c.SetHoldout(t.Context(), functiontest.App, holdingOut("bob", "ann"))
	must.Succeed(t, err)
	if got := ask("bob", ""); got.Experiment != nil || got.Fallback == nil || *got.Fallback != api.FallbackHoldout {
		t.Errorf("bob, who is held out, is in %+v", got.Experiment)
	}
	_, err = c.SetHoldout(t.Context(), functiontest.App, experiment.Holdout{})
	must.Succeed(t, err)
	_, _, err = config.ExperimentsOf(c).Stop(t.Context(), functiontest.App, e.Name, b.Backends.Now())
	must.Succeed(t, err)
	if got := ask("bob", ""); got.Experiment != nil || got.StrategyVersion != treated+1 {
		t.Errorf("after the end bob is in %+v and gets strategy %d", got.Experiment, got.StrategyVersion)
	}
	if _, text := functiontest.Call(h, key, "POST", "/1/rank", fmt.Sprintf(list, "bob", "")); strings.Contains(text, "experiment") {
		t.Errorf("the answer of an app without an experiment names one: %s", text)
	}
}

// An answer of an arm is noted, and those that say another strategy, explain, or are no order are not.
func TestExposures(t *testing.T) {
	b := newBoutique(t)
	b.view(t, "bob", 2*day, "o0", "o1")
	c, h := b.Backends.CachedConfig, rank.New(b.Backends.ForRank())
	app, err := c.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	other := app.Strategy
	other.PersonalizationImpact = 1
	second, _, err := c.SetStrategy(t.Context(), functiontest.App, other)
	must.Succeed(t, err)
	e := between(t, c, b.Backends.Now(), [2]int64{app.StrategyVersion, second.StrategyVersion}, "ann", "bob")
	exposures := func(user string) (arms []string) {
		must.Succeed(t, profile.ExposuresOf(b.Backends.Profiles).Flush(t.Context()))
		row, err := b.Backends.Store.Users.ReadPrimary(t.Context(), functiontest.App, user, store.UserExposures)
		must.Succeed(t, err)
		for _, x := range row.Exposures {
			if arms = append(arms, x.Arm); x.Experiment != e.Name || x.Since != e.StartAt.UnixMilli() {
				t.Errorf("%s: %+v", user, x)
			}
		}
		return arms
	}
	list := `{"userToken":"%s","index":"i","objectIDs":["o0","o1"]%s}`
	for _, options := range []string{`,"explain":true`, `,"strategy":1`} {
		ranked(t, h, fmt.Sprintf(list, "bob", options))
	}
	functiontest.Call(h, "recommendation", "GET", "/1/profiles/bob", "")
	if got := exposures("bob"); len(got) > 0 {
		t.Errorf("nobody has answered bob: %q", got)
	}
	for user, ask := range map[string]func(user string){
		"bob": func(user string) { ranked(t, h, fmt.Sprintf(list, user, "")) },
		"ann": func(user string) { boosted(t, h, "/1/boosts/"+user+"?engine=algolia") },
		"eve": func(user string) {
			functiontest.Call(h, "recommendation", "POST", "/1/recommend", `{"model":"for-you","index":"i","userToken":"`+user+`"}`)
		},
	} {
		arm, _ := e.Arm(user)
		for range 2 {
			if ask(user); !slices.Equal(exposures(user), []string{e.Arms[arm].Name}) {
				t.Errorf("%s: %q", user, exposures(user))
			}
		}
	}
}
