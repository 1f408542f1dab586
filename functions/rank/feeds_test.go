package rank_test

import (
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

func TestFeedDefinitions(t *testing.T) {
	s := functiontest.Start(t)
	const (
		news = "/1/feeds/news"
		full = `{"index":"posts","date":"publishedAt","maxAgeDays":30,"where":["categories:News",["lang:en","lang:de"]],
			"diversity":{"facet":"author","maxPerValue":2},"seen":"demote","format":"wordpress"}`
		stored = `"version":1,"index":"posts","date":"publishedAt","maxAgeDays":30,"where":["categories:News",["lang:en","lang:de"]],` +
			`"diversity":{"facet":"author","maxPerValue":2},"seen":"demote","format":"wordpress"`
	)
	h := rank.New(s.Backends.ForRank())
	functiontest.Check(t, h,
		functiontest.Ask("", "PUT", news, full, 401, "Invalid credentials"),
		functiontest.Ask("recommendation", "PUT", news, full, 403, "Method not allowed with this API key"),
		functiontest.Ask("search", "GET", news, "", 403, "Method not allowed with this API key"),
		functiontest.Ask("settings", "GET", news, "", 404, "Feed does not exist"),
		functiontest.Ask("settings", "DELETE", news, "", 404, "Feed does not exist"),
		functiontest.Ask("settings", "GET", "/1/feeds", "", 200, `{"feeds":[]}`),
		functiontest.Ask("settings", "GET", "/1/feeds?limit=1", "", 422, "limit"),
		functiontest.Ask("settings", "PUT", "/1/feeds/latest", full, 422, "a feed cannot be named latest"),
		functiontest.Ask("settings", "PUT", "/1/feeds/a%20b", full, 422, "the name of a feed has 1 to 64"),
		functiontest.Ask("settings", "PUT", news, `{`, 400, "the body is not valid JSON"),
		functiontest.Ask("settings", "PUT", news, `{"index":"posts"}`, 422, "date is missing"),
		functiontest.Ask("settings", "PUT", news, `{"index":"posts","date":"d","where":["x"]}`, 422, "where[0] must have the form facet:value"),
		functiontest.Ask("settings", "PUT", news, full, 200, `{"name":"news",`+stored+`,"backfill":`),
		functiontest.Ask("settings", "PUT", news, full, 200, `{"name":"news","version":1,`),
		functiontest.Ask("settings", "GET", news, "", 200, stored),
		functiontest.Ask("settings", "PUT", "/1/feeds/all", `{"index":"posts","date":"publishedAt"}`, 200,
			`{"name":"all","version":2,"index":"posts","date":"publishedAt","seen":"keep","format":"records","backfill":`),
		functiontest.Ask("settings", "GET", "/1/feeds", "", 200, `{"feeds":[{"name":"all","version":2,`),
		functiontest.Ask("settings", "PUT", news, `{"index":"posts","date":"publishedAt"}`, 200, `{"name":"news","version":3,`),
		functiontest.Ask("settings", "DELETE", "/1/feeds/all", "", 200, `{"deletedAt":"`),
		functiontest.Ask("settings", "GET", "/1/feeds/all", "", 404, "Feed does not exist"),
	)
	app, err := s.Backends.Config.App(t.Context(), functiontest.App)
	if err != nil || strings.Join(app.Dates.Of("posts"), " ") != "publishedAt" {
		t.Errorf("dates %v, error %v", app.Dates, err)
	}
	jobs, err := s.Backends.DateRows.List(t.Context(), functiontest.App, 9)
	if err != nil || len(jobs) != 1 {
		t.Errorf("jobs %+v, error %v; want one for the one attribute", jobs, err)
	}
}

// The feed after the last one that an app may have is refused.
func TestTooManyFeeds(t *testing.T) {
	s := functiontest.Start(t)
	for i := range config.MaxFeeds {
		f := config.Feed{Name: string(rune('A'+i/10)) + string(rune('0'+i%10)), Index: "posts", Date: "d", Definition: `{"index":"posts","date":"d"}`}
		if _, _, err := s.Backends.Config.SetFeed(t.Context(), functiontest.App, f, s.Backends.Now()); err != nil {
			t.Fatal(err)
		}
	}
	functiontest.Check(t, rank.New(s.Backends.ForRank()),
		functiontest.Ask("settings", "PUT", "/1/feeds/more", `{"index":"posts","date":"d"}`, 422, "The app has 50 feeds, as many as it may have"),
		functiontest.Ask("settings", "PUT", "/1/feeds/A0", `{"index":"posts","date":"d","maxAgeDays":2}`, 200, `"version":51`),
	)
}
