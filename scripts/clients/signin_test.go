package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/chromium"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// testSignIns signs a visitor in with each client of the guide, in Chromium. What they saw before counts for the user, and what
// the next visitor sees after they have signed out does not.
func testSignIns(t *testing.T, dir string) {
	const host = "shop.test"
	browser := chromium.Open(t, host)
	shop := httptest.NewServer(pages(dir))
	t.Cleanup(shop.Close)
	origin := strings.Replace(shop.URL, "127.0.0.1", host, 1)
	s := start(t, origin)
	must.Succeed(t, s.Backends.CachedConfig.PutKey(t.Context(), "demo", config.Key{Hash: auth.Hash("pagekey"), ACL: []string{auth.Search}, Indexes: []string{"products"}}))
	for _, mode := range []config.IdentityMode{config.IdentityCollect, config.IdentityLink} {
		_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: mode, Lookback: time.Hour}, 0)
		must.Succeed(t, err)
	}
	c, err := client.New(client.Config{URL: s.URL, App: "demo", Key: "demokey", Retry: client.NoRetry})
	must.Succeed(t, err)
	must.Succeed(t, c.Strategies().Set(t.Context(), api.Strategy{EventsScoring: []api.EventScore{{EventName: "Product Viewed", EventType: "view", Score: 1}},
		FacetsScoring: []api.FacetScore{{FacetName: "brand", Score: 100}}}))
	engine := httptest.NewTLSServer(newRecorder(s.URL))
	t.Cleanup(engine.Close)
	secured := client.SecuredKey("demokey", client.Secured{UserToken: "ann", ValidUntil: time.Now().Add(time.Hour), Indexes: []string{"products"}})

	ctx, cancel := context.WithTimeout(browser, 2*time.Minute)
	defer cancel()
	// step opens a page and returns the user of what a way does there.
	step := func(way, what, key string) string {
		t.Helper()
		must.Succeed(t, chromedp.Do(ctx, chromedp.Navigate(origin+"/page?segment=@segment/analytics-next&engine="+engine.URL)))
		user, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf("import('/signintest.mjs').then((m) => m.ways[%q][%q](%q, %q))", way, what, key, engine.URL), chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s, %s: %v", way, what, err)
		}
		return user
	}
	// has waits until a profile has a value.
	has := func(user, value string) []string {
		t.Helper()
		for {
			must.Succeed(t, s.Idle(ctx))
			p, err := c.Profiles().Get(ctx, user, api.ProfileQuery{})
			if _, unknown := errors.AsType[*api.Error](err); err != nil && !unknown {
				t.Fatal(err)
			}
			var values []string
			for _, a := range p.Affinities {
				values = append(values, a.Value)
			}
			if slices.Contains(values, value) {
				return values
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s has %q, want %s", user, values, value)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	for _, way := range []string{"script", "insights", "segment", "fetch"} {
		for _, n := range []string{"1", "2"} {
			record := fmt.Sprintf(`{"objectID":"%s-%s","brand":"%[1]s %[2]s"}`, way, n)
			_, err := c.Catalog().Batch(ctx, "products", api.BatchAction{Action: api.ActionAddObject, Body: []byte(record)})
			must.Succeed(t, err)
		}
		before := step(way, "before", "pagekey")
		has(before, way+" 1")
		if user := step(way, "signIn", secured); user != "ann" {
			t.Errorf("%s: the user is %s after the sign-in", way, user)
		}
		has("ann", way+" 1")
		i, err := c.Profiles().Identity(ctx, before)
		if err != nil || len(i.Links) != 1 || i.Links[0].AuthenticatedUserToken != "ann" || i.Links[0].State != "open" || i.Links[0].Strength != "strong" {
			t.Errorf("%s: the links of %s: %+v, %v", way, before, i, err)
		}
		after := step(way, "after", "pagekey")
		if has(after, way+" 2"); after == before {
			t.Errorf("%s: the next visitor is %s again", way, after)
		}
		if values := has("ann", way+" 1"); slices.Contains(values, way+" 2") {
			t.Errorf("%s: what the next visitor saw counts for ann: %q", way, values)
		}
	}
}

// The guide shows the lines that the test runs, in its order.
func TestSignInsAreShown(t *testing.T) {
	module, err := os.ReadFile("signintest.mjs")
	must.Succeed(t, err)
	guide, err := os.ReadFile("../../functions/docs/guides/sign-in.md")
	must.Succeed(t, err)
	shown := regexp.MustCompile(`(?s)// shown\n(.*?)\n *// end`).FindAllSubmatch(module, -1)
	if len(shown) != 6 {
		t.Fatalf("%d parts are shown, want 6", len(shown))
	}
	for _, part := range shown {
		indent := part[1][:len(part[1])-len(bytes.TrimLeft(part[1], " "))]
		lines := bytes.ReplaceAll(part[1][len(indent):], append([]byte("\n"), indent...), []byte("\n"))
		_, rest, found := bytes.Cut(guide, slices.Concat([]byte("```js\n"), lines, []byte("\n```\n")))
		if !found {
			t.Fatalf("the guide does not show, or not in this order:\n%s", lines)
		}
		guide = rest
	}
}
