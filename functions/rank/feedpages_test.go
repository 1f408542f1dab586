package rank_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

const wpPost = `{"id":7,"title":{"rendered":"A \u0026 B"}, "tags":[1,2]}`

// blog starts an app with a feed of four posts, an hour apart, and a user who likes
// red.
func blog(t *testing.T) *stack.Stack {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "Read", EventType: event.View, Score: 3}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "tags", Score: 10}},
		PersonalizationImpact: 100, Ranking: strategy.PlainRanking(),
	})
	now := time.Now().UTC()
	for name, definition := range map[string]string{
		"news": `{"index":"posts","date":"publishedAt"}`,
		"wp":   `{"index":"posts","date":"publishedAt","format":"wordpress","where":["tags:red"]}`,
	} {
		setFeed(t, s, name, definition)
	}
	var records []string
	for i, tag := range []string{"blue", "red", "green", "red"} {
		r := map[string]any{"objectID": fmt.Sprint("post-", i), "tags": tag, "publishedAt": now.Add(-time.Duration(i+1) * time.Hour).Format(time.RFC3339)}
		if i == 1 {
			r["wordpress"] = wpPost
		}
		body, err := json.Marshal(r)
		must.Succeed(t, err)
		records = append(records, `{"action":"addObject","body":`+string(body)+`}`)
	}
	batch := `{"requests":[` + strings.Join(records, ",") + `]}`
	functiontest.Do(t, catalog.New(s.Backends.ForCatalog()), "addObject", "POST", "/1/indexes/posts/batch", batch)
	line := fmt.Sprintf(`{"eventType":"view","eventName":"Read","index":"posts","userToken":"ann","timestamp":%d,"filters":["tags:red"]}`, now.Add(-time.Hour).UnixMilli())
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
	return s
}

func setFeed(t testing.TB, s *stack.Stack, name, definition string) {
	t.Helper()
	d, err := feed.Decode(name, []byte(definition))
	must.Succeed(t, err)
	stored, err := d.Encode()
	must.Succeed(t, err)
	f := config.Feed{Name: name, Index: d.Index, Date: d.Date, Definition: string(stored)}
	_, _, err = s.Backends.CachedConfig.SetFeed(t.Context(), functiontest.App, f, time.Now())
	must.Succeed(t, err)
}

// paged reads a page of objectIDs.
func paged(t *testing.T, h http.Handler, key, path string) ([]string, api.FeedPage) {
	t.Helper()
	p := functiontest.Answer[api.FeedPage](t, h, key, "GET", path, "")
	ids := []string{}
	for _, item := range p.Items {
		var id string
		must.Succeed(t, json.Unmarshal(item, &id))
		ids = append(ids, id)
	}
	return ids, p
}

func TestFeeds(t *testing.T) {
	s := blog(t)
	h := rank.New(s.Backends.ForRank())
	const r = "recommendation"
	for path, want := range map[string][]string{
		"/1/feeds/news/suggested?format=ids&userToken=ann":         {"post-1", "post-3", "post-0", "post-2"},
		"/1/feeds/news/suggested?format=ids&userToken=ann&limit=1": {"post-1"},
		"/1/feeds/news/suggested?format=ids&userToken=nobody":      {"post-0", "post-1", "post-2", "post-3"},
		"/1/feeds/news/suggested?format=ids":                       {"post-0", "post-1", "post-2", "post-3"},
		"/1/feeds/news/latest?format=ids&limit=2":                  {"post-0", "post-1"},
		"/1/feeds/news/latest?format=ids&exclude=post-0&exclude=x": {"post-1", "post-2", "post-3"},
		"/1/feeds/wp/latest?format=ids":                            {"post-1", "post-3"},
	} {
		ids, p := paged(t, h, r, path)
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		personal := strings.Contains(path, "ann") || p.Order == api.OrderLatest
		if (p.Fallback == nil) != personal || (p.Cursor == nil) == strings.Contains(path, "limit") || p.AsOf.IsZero() {
			t.Errorf("%s: %+v", path, p)
		}
	}
	// A walk, in both orders.
	for _, order := range []string{"suggested?userToken=ann&", "latest?", "suggested?exclude=post-3&exclude=post-0&", "latest?exclude=post-3&"} {
		whole, _ := paged(t, h, r, "/1/feeds/news/"+order+"format=ids")
		var walk []string
		for cursor := ""; ; {
			ids, p := paged(t, h, r, "/1/feeds/news/"+order+"format=ids&limit=1"+cursor)
			walk = append(walk, ids...)
			if p.Cursor == nil {
				break
			}
			cursor = "&cursor=" + *p.Cursor
		}
		if diff := cmp.Diff(whole, walk); diff != "" {
			t.Errorf("%s (-page +walk):\n%s", order, diff)
		}
	}
	// Records are as they were stored.
	p := functiontest.Answer[api.FeedPage](t, h, r, "GET", "/1/feeds/wp/latest?format=records&limit=1", "")
	if p.Feed != "wp" || p.Order != "latest" {
		t.Fatalf("%+v", p)
	}
	stored := functiontest.Do(t, catalog.New(s.Backends.ForCatalog()), "addObject", "GET", "/1/indexes/posts/post-1", "")
	if string(p.Items[0]) != stored {
		t.Errorf("the record is %s, stored as %s", p.Items[0], stored)
	}
}

// A deleted user gets no personal page, and a deleted post is in none.
func TestFeedAfterDeletions(t *testing.T) {
	s := blog(t)
	h := rank.New(s.Backends.ForRank())
	if ids, _ := paged(t, h, "recommendation", "/1/feeds/news/suggested?format=ids&userToken=ann"); ids[0] != "post-1" {
		t.Fatalf("ann's page is %v", ids)
	}
	if _, err := s.Backends.Profiles.Delete(t.Context(), functiontest.App, "ann"); err != nil {
		t.Fatal(err)
	}
	ids, p := paged(t, h, "recommendation", "/1/feeds/news/suggested?format=ids&userToken=ann")
	if p.Fallback == nil || ids[0] != "post-0" {
		t.Errorf("the page of a deleted user is %v, fallback %v", ids, p.Fallback)
	}
}

// A page with a plain search key gets the suggested order if the app permits it, and
// learns nothing else of the user.
func TestSuggestedFeedOfBrowsers(t *testing.T) {
	s := blog(t)
	h := rank.New(s.Backends.ForRank())
	must.Succeed(t, s.Backends.CachedConfig.SetBrowserRanking(t.Context(), functiontest.App, true))
	for user, first := range map[string]string{"ann": "post-1", "nobody": "post-0"} {
		ids, p := paged(t, h, "search", "/1/feeds/news/suggested?format=ids&userToken="+user)
		if ids[0] != first || p.Fallback != nil {
			t.Errorf("%s: %v, fallback %v; want %s first, and no fallback", user, ids, p.Fallback, first)
		}
	}
	// Nor which records the user's events name.
	setFeed(t, s, "unseen", `{"index":"posts","date":"publishedAt","seen":"exclude","format":"ids"}`)
	line := fmt.Sprintf(`{"eventType":"view","eventName":"Read","index":"posts","userToken":"bob","timestamp":%d,"objectIDs":["post-2"]}`, time.Now().UnixMilli())
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
	for key, n := range map[string]int{"recommendation": 3, "search": 4} {
		if ids, _ := paged(t, h, key, "/1/feeds/unseen/suggested?userToken=bob"); len(ids) != n {
			t.Errorf("the key %s gets %v, want %d records", key, ids, n)
		}
	}
}

func TestFeedRefusals(t *testing.T) {
	s := blog(t)
	h := rank.New(s.Backends.ForRank())
	_, p := paged(t, h, "recommendation", "/1/feeds/news/latest?format=ids&limit=1")
	ask := func(key, path string, status int, want string) functiontest.Request {
		return functiontest.Ask(key, "GET", path, "", status, want)
	}
	const r = "recommendation"
	functiontest.Check(t, h,
		ask("", "/1/feeds/news/latest", 401, "Invalid credentials"),
		ask("search", "/1/feeds/news/latest?limit=1", 200, `"objectID":"post-0"`),
		ask("search", "/1/feeds/news/suggested", 403, "Method not allowed with this API key"),
		ask("addObject", "/1/feeds/news/latest", 403, "Method not allowed with this API key"),
		ask(r, "/1/feeds/sport/latest", 404, "Feed sport does not exist"),
		ask(r, "/1/feeds/a.b/latest", 422, "the name of a feed"),
		ask(r, "/1/feeds/news/oldest", 404, "Path not supported"),
		ask(r, "/1/feeds/news/latest?limit=101", 422, `limit must be an integer from 1 to 100, got \"101\"`),
		ask(r, "/1/feeds/news/latest?limit=1&limit=2", 422, "limit is there 2 times"),
		ask(r, "/1/feeds/news/latest?page=2", 422, `Unknown query option \"page\": this route takes userToken, limit, cursor, format, exclude`),
		ask(r, "/1/feeds/news/latest?format=xml", 422, `format must be records, ids or wordpress, got \"xml\"`),
		ask(r, "/1/feeds/news/latest?exclude=", 422, "exclude must have 1 to 512 bytes, got 0"),
		ask(r, "/1/feeds/news/latest?limit=1"+strings.Repeat("&exclude=a", 1001), 422, "exclude is there 1001 times, it may be there 1000 times"),
		ask(r, "/1/feeds/news/latest?userToken=", 422, "UserToken must contain only"),
		ask(r, "/1/feeds/news/latest?userToken=%zz", 422, "percent-encode"),
		ask(r, "/1/feeds/news/latest?cursor=", 422, "cursor must not be empty"),
		ask(r, "/1/feeds/news/latest?cursor=AAAA", 422, "cursor is damaged"),
		ask(r, "/1/feeds/news/suggested?cursor="+*p.Cursor, 422, "cursor belongs to the order latest"),
		ask(r, "/1/feeds/wp/latest?format=ids&cursor="+*p.Cursor, 422, "cursor belongs to another feed"),
		ask(r, "/1/feeds/news/latest?format=ids&cursor="+*p.Cursor, 200, `"items":["post-1","post-2","post-3"],"cursor":null`),
	)
}

func TestFeedDefinitions(t *testing.T) {
	s := functiontest.Start(t)
	const (
		news = "/1/feeds/news"
		full = `{"index":"posts","date":"publishedAt","maxAgeDays":30,"where":["categories:News",["lang:en","lang:de"]],
			"diversity":{"facet":"author","maxPerValue":2},"seen":"demote","format":"wordpress","public":true}`
		stored = `"version":1,"index":"posts","date":"publishedAt","maxAgeDays":30,"where":["categories:News",["lang:en","lang:de"]],` +
			`"diversity":{"facet":"author","maxPerValue":2},"seen":"demote","format":"wordpress","public":true`
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
		functiontest.Ask("settings", "PUT", news, `{"index":"posts","date":"d","public":1}`, 422, "public must be true or false, got 1"),
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
