package rank_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/experiment"
)

// holdingOut returns a holdout of a user that does not hold others out.
func holdingOut(user string, others ...string) experiment.Holdout {
	h := experiment.Holdout{Share: experiment.MaxHoldout}
	for n := 0; ; n++ {
		h.Seed = fmt.Sprint("seed ", n)
		if h.Has(user) && !slices.ContainsFunc(others, h.Has) {
			return h
		}
	}
}

// A user who is held out gets the order, the recommendations and the boosts of a user without events, also under a
// draft and another half-life, and answers say why. When the holdout ends, they get their own at once.
func TestHeldOut(t *testing.T) {
	b := newBoutique(t)
	b.view(t, "bob", 2*day, "o0", "o1")
	h := rank.New(b.Backends.ForRank())
	set := func(to experiment.Holdout) {
		t.Helper()
		_, err := b.Backends.CachedConfig.SetHoldout(t.Context(), functiontest.App, to)
		must.Succeed(t, err)
	}
	ask := func(user, options string) api.RankAnswer {
		return ranked(t, h, `{"userToken":"`+user+`","index":"i","objectIDs":["o0","o1","o2","o3","o4"]`+options+`}`)
	}
	own := ask("ann", "")
	set(holdingOut("ann", "bob", "nobody"))
	for _, options := range []string{"", `,"seen":"exclude"`, `,"impact":100,"explain":true`, `,"strategy":1`,
		`,"draft":{"eventsScoring":[{"eventName":"Seen","eventType":"view","score":7}],"facetsScoring":[{"facetName":"brand","score":9}],"personalizationImpact":80}`} {
		got, want := ask("ann", options), ask("nobody", options)
		if diff := cmp.Diff(want.Items, got.Items, near); diff != "" || got.Fallback == nil || *got.Fallback != api.FallbackHoldout {
			t.Errorf("%s: fallback %v (-nobody +ann):\n%s", options, got.Fallback, diff)
		}
		if other := ask("bob", options); other.Fallback != nil {
			t.Errorf("%s: bob, who is not held out: fallback %s", options, *other.Fallback)
		}
	}
	const key = "recommendation"
	body := `{"model":"for-you","index":"i","userToken":"%s"}`
	items := func(user string) (answer api.RecommendAnswer) {
		_, text := functiontest.Call(h, key, "POST", "/1/recommend", fmt.Sprintf(body, user))
		must.Succeed(t, json.Unmarshal([]byte(text), &answer))
		return api.RecommendAnswer{Items: answer.Items}
	}
	if diff := cmp.Diff(items("nobody"), items("ann"), near); diff != "" {
		t.Errorf("recommendations (-nobody +ann):\n%s", diff)
	}
	functiontest.Check(t, h, functiontest.Ask(key, "POST", "/1/recommend", fmt.Sprintf(body, "ann"), 200, `"fallback":"holdout"`))
	for _, engine := range []string{"algolia", "prompt", "typesense"} {
		got, nobody := boosted(t, h, "/1/boosts/ann?engine="+engine), boosted(t, h, "/1/boosts/nobody?engine="+engine)
		if diff := cmp.Diff(nobody.Query, got.Query); diff != "" || !got.Holdout || len(got.Affinities) > 0 {
			t.Errorf("boosts for %s: %+v (-nobody +ann):\n%s", engine, got, diff)
		}
	}
	if got := boosted(t, h, "/1/boosts/bob?engine=algolia"); got.Holdout || len(got.Affinities) == 0 {
		t.Errorf("boosts of bob: %+v", got)
	}
	set(experiment.Holdout{})
	if diff := cmp.Diff(own, ask("ann", ""), near, cmp.FilterPath(func(p cmp.Path) bool {
		return p.String() == "ID" || p.String() == "Took"
	}, cmp.Ignore())); diff != "" {
		t.Errorf("when the holdout has ended (-before +after):\n%s", diff)
	}
}
