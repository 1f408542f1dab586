package rank_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// only returns a ranking in which one feature counts.
func only(set func(*strategy.Ranking)) *strategy.Ranking {
	r := strategy.PlainRanking()
	set(r)
	return r
}

// A placement orders as a draft does whose ranking is that of the placement, and other requests as before.
func TestPlacements(t *testing.T) {
	b := newBoutique(t)
	h := rank.New(b.Backends.ForRank())
	s := allFeatures()
	before := ranked(t, h, `{"userToken":"ann","index":"i","objectIDs":["o4","o3","o2","o1","o0"],"explain":true}`)
	s.Placements = map[string]*strategy.Ranking{
		"new":     only(func(r *strategy.Ranking) { r.Freshness = s.Ranking.Freshness }),
		"popular": only(func(r *strategy.Ranking) { r.Popularity = &strategy.PopularityRanking{Weight: weight(500)} }),
		"default": {},
	}
	functiontest.SetStrategy(t, b.Stack, s)
	var orders []string
	for name, r := range s.Placements {
		draft := s
		draft.Ranking, draft.Placements = r, nil
		text, err := json.Marshal(draft)
		must.Succeed(t, err)
		body := `{"userToken":"ann","index":"i","explain":true,"objectIDs":["o4","o3","o2","o1","o0"],` + "%s}"
		got, want := ranked(t, h, fmt.Sprintf(body, `"placement":"`+name+`"`)), ranked(t, h, fmt.Sprintf(body, `"draft":`+string(text)))
		if diff := cmp.Diff(want.Items, got.Items, near); diff != "" {
			t.Errorf("placement %s, and a draft of its ranking: %s", name, diff)
		}
		orders = append(orders, fmt.Sprint(order(got)))
		var recommended [2]api.RecommendAnswer
		for i, by := range []string{`"placement":"` + name + `"`, `"draft":` + string(text)} {
			recommended[i] = functiontest.Answer[api.RecommendAnswer](t, h, "recommendation", "POST", "/1/recommend",
				`{"model":"for-you","userToken":"ann","index":"i","explain":true,`+by+`}`)
		}
		if diff := cmp.Diff(recommended[1].Items, recommended[0].Items, near); diff != "" || len(recommended[0].Items) == 0 {
			t.Errorf("recommendations of placement %s, and of a draft of its ranking: %s", name, diff)
		}
	}
	if slices.Sort(orders); len(slices.Compact(orders)) < 2 {
		t.Errorf("all placements have the order %s", orders[0])
	}
	functiontest.Check(t, h, functiontest.Ask("recommendation", "POST", "/1/rank", `{"userToken":"ann","index":"i","objectIDs":["o1"],"placement":"old"}`,
		422, `placement \"old\" is not one of the strategy: default, new, popular`))
	after := ranked(t, h, `{"userToken":"ann","index":"i","objectIDs":["o4","o3","o2","o1","o0"],"explain":true}`)
	if diff := cmp.Diff(before.Items, after.Items, near); diff != "" {
		t.Errorf("without a placement the order has changed: %s", diff)
	}
}

// A suggested feed goes by the ranking of a placement.
func TestPlacementOfAFeed(t *testing.T) {
	s := blog(t)
	h := rank.New(s.Backends.ForRank())
	app, err := s.Backends.CachedConfig.App(t.Context(), functiontest.App)
	must.Succeed(t, err)
	placed := app.Strategy
	placed.Placements = map[string]*strategy.Ranking{"now": only(func(r *strategy.Ranking) {
		r.Session = &strategy.SessionRanking{HalfLife: strategy.Events(0.1), Weight: weight(100)}
	})}
	functiontest.SetStrategy(t, s, placed)
	for i, tag := range []string{"red", "green"} {
		line := fmt.Sprintf(`{"eventType":"view","eventName":"Read","index":"posts","userToken":"ann","timestamp":%d,"filters":["tags:%s"]}`,
			time.Now().Add(time.Duration(i-10)*time.Minute).UnixMilli(), tag)
		functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
	}
	for _, c := range []struct{ query, want string }{
		{"?userToken=ann&format=ids", "[post-1 post-3 post-2 post-0]"},
		{"?userToken=ann&format=ids&placement=now", "[post-2 post-1 post-3 post-0]"},
	} {
		if ids, _ := paged(t, h, "recommendation", "/1/feeds/news/suggested"+c.query); fmt.Sprint(ids) != c.want {
			t.Errorf("%s: %v, want %s", c.query, ids, c.want)
		}
	}
	ask := func(query, want string) functiontest.Request {
		return functiontest.Ask("recommendation", "GET", "/1/feeds/news/"+query, "", 422, want)
	}
	functiontest.Check(t, h,
		ask("suggested?placement=old", `placement \"old\" is not one of the strategy: now`),
		ask("latest?placement=now", "placement is for the order suggested: the order latest goes by the date alone"),
		ask("suggested?placement=now&placement=a", "placement is there 2 times, it may be there once"),
	)
}
