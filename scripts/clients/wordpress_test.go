package clients

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/wordpress"
	"github.com/affinityengine/affinity/scripts/affinity/wordpress/wordpresstest"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// testWordPress reads a site, and feeds of its posts, with one program. The engine is the host of the
// app's own, so that a public feed needs no key.
func testWordPress(t *testing.T, dir string) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: "demokey"}}, RetentionDays: 90,
		ConfigTTL: time.Millisecond, Hosts: auth.Hosts{"localhost": "demo"}})
	must.Succeed(t, err)
	must.CloseAtEnd(t, s)
	engine, err := url.Parse(s.URL)
	must.Succeed(t, err)
	engine.Host = "localhost:" + engine.Port()
	c, err := client.New(client.Config{URL: engine.String(), App: "demo", Key: "demokey", Retry: client.NoRetry})
	must.Succeed(t, err)
	_, err = c.Feeds().Set(t.Context(), "blog", api.FeedRequest{Index: "posts", Date: "publishedAt", Format: api.FormatWordPress, Public: true})
	must.Succeed(t, err)

	weight := 10
	ranking := strategy.PlainRanking()
	ranking.Freshness.Weight = &weight
	_, _, err = s.Backends.CachedConfig.SetStrategy(t.Context(), "demo", strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Read", EventType: event.View, Score: 1}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "tags", Score: 1}}, PersonalizationImpact: 100, Ranking: ranking})
	must.Succeed(t, err)

	site := wordpresstest.New(t, 22)
	for id, post := range site.Posts { // fresh enough for the order suggested to tell them apart
		post.Date = time.Now().UTC().Add(-time.Duration(24*(23-id)) * time.Hour).Truncate(time.Second)
		post.Modified = post.Date
	}
	site.Posts[7].Title = `Schöne "Grüße" 👋 <b>&amp;</b>`
	at, err := wordpress.Open(t.Context(), wordpress.Config{URL: site.URL})
	must.Succeed(t, err)
	sum, err := wordpress.Sync(t.Context(), wordpress.Options{Site: at, Engine: c.Catalog(), Target: wordpress.Target{Site: site.URL, Engine: c.URL(), App: "demo", Index: "posts"},
		State: filepath.Join(t.TempDir(), "state"), PerPage: 100, Progress: func(string, int, int) {}, Warn: func(string) {}})
	if err != nil || sum.Added != 22 {
		t.Fatalf("%+v, %v", sum, err)
	}

	read := func(address string, orders ...string) string {
		t.Helper()
		run := exec.CommandContext(t.Context(), "node", append([]string{"wordpress.mjs", address}, orders...)...)
		run.Dir, run.Stderr = dir, os.Stderr
		got, err := run.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", address, err, got)
		}
		return string(got)
	}
	key := "?x-algolia-application-id=demo&x-algolia-api-key="
	secured := url.QueryEscape(client.SecuredKey("demokey", client.Secured{UserToken: "ann"}))
	feed := engine.String() + "/1/feeds/blog/"
	posts := site.URL + "/wp-json/wp/v2/posts"
	for _, test := range []struct {
		address string
		orders  []string
	}{
		{feed + "latest", []string{"asc", "desc"}},
		{feed + "latest" + key + "demokey", []string{"asc", "desc"}},
		{feed + "suggested" + key + secured, nil}, // ann has no events, so that the newest post comes first
	} {
		want, got := strings.Split(read(posts, test.orders...), "\n"), strings.Split(read(test.address, test.orders...), "\n")
		if len(want) < 40 || len(want) != len(got) {
			t.Errorf("%s: %d lines, of the site %d", test.address, len(got), len(want))
			continue
		}
		for i := range want {
			if want[i] != got[i] {
				t.Errorf("%s:\n got %.800s\nwant %.800s", test.address, got[i], want[i])
			}
		}
	}
}
