package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/affinityengine/affinity/scripts/affinity/cli"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

func TestIdentityCommands(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(args, "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	run("identity", "link", "a1", "ann").wants(t, cli.ExitFailed, "affinity app identity APP --mode collect")
	_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
	must(t, err)
	run("identity", "link", "a1").wants(t, cli.ExitUsage, "want an anonymous token and the user")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role none, 0 links")
	run("identity", "link", "a1", "ann", "--reason", "by mail").wants(t, cli.ExitOK, "a1: role anonymous, 1 links", "open", "strong", "-       request by mail")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role known, 1 links", "a1 ")
	run("identity", "unlink", "a1", "ann").wants(t, cli.ExitOK, "unlinked; evidence received up to ")
	run("identity", "show", "a1").wants(t, cli.ExitOK, "unlinked")
	run("identity", "unlink", "a1", "bob").wants(t, cli.ExitFailed, "The tokens are not linked")
	run("identity", "refused").wants(t, cli.ExitOK, "no link was refused in the last 30 days")
	body := `{"events":[{"eventType":"view","eventName":"Viewed","index":"i","userToken":"undefined","authenticatedUserToken":"ann","objectIDs":["1"]}]}`
	rawPost(t, s, "/1/events", body)
	must(t, s.Idle(t.Context()))
	run("identity", "refused").wants(t, cli.ExitOK, "DAY", " value   1", "value   undefined  ann")
	run("identity", "refused", "--reason", "late").wants(t, cli.ExitOK, "no link was refused")
	run("identity", "refused", "--reason", "bad").wants(t, cli.ExitFailed, "reason must be one of")
}

// All links of a day are listed, and undone at once. What has failed is undone by the next call.
func TestUnlinkADay(t *testing.T) {
	s := startEngine(t, stack.Options{})
	_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
	must(t, err)
	broken := atomic.Bool{}
	engine, err := url.Parse(s.URL)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(engine)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && broken.Load() && strings.Contains(r.URL.Path, "/a3/") {
			http.Error(w, `{"status":501,"message":"the row is broken"}`, http.StatusNotImplemented)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	answering := func(typed string, args ...string) ran {
		return affinityWith(t, t.Context(), typed, func(p *program) { p.Retry.Total = time.Second / 20 },
			append(args, "--url", front.URL, "--app", "demo", "--key", "demokey")...)
	}
	run := func(args ...string) ran { return answering("", args...) }
	for _, link := range [][]string{{"a1", "ann"}, {"a1", "bob"}, {"a2", "ann"}, {"a3", "ann"}, {"a4", "eve"}} {
		run("identity", "link", link[0], link[1]).wants(t, cli.ExitOK)
	}
	run("identity", "unlink", "a4", "eve").wants(t, cli.ExitOK)
	now := time.Now().UTC()
	if now.Add(time.Minute).Day() != now.Day() {
		t.Skip("the day ends")
	}
	today, yesterday := now.Format(time.DateOnly), now.AddDate(0, 0, -1).Format(time.DateOnly)
	run("identity", "list").wants(t, cli.ExitOK, "ANONYMOUS", "closed    strong", "unlinked  strong    -    request")
	run("identity", "list", "--limit", "2").wants(t, cli.ExitOK, "more follow: --cursor a1")
	run("identity", "list", "--cursor", "a3", "--json").wants(t, cli.ExitOK, `"userToken": "a4"`)
	if out := run("identity", "list", "--day", today, "--by", "request", "--state", "open", "--cursor", "a1", "-o", "csv").out; strings.Count(out, "\n") != 3 {
		t.Errorf("two open links behind a1, and a header: %s", out)
	}
	run("identity", "list", "--day", "today").wants(t, cli.ExitUsage, `--day "today": must be a day in UTC`)
	run("identity", "list", "--state", "gone").wants(t, cli.ExitFailed, "state must be open, closed")
	for _, args := range [][]string{{"--yes"}, {"a1", "ann", "--day", today}, {"a1", "ann", "--by-key", "5b1f0a9c77de"}} {
		run(append([]string{"identity", "unlink"}, args...)...).wants(t, cli.ExitUsage, "--weak choose many links, and --yes undoes them: give no tokens")
	}
	run("identity", "unlink", "--by", "call").wants(t, cli.ExitOK, "0 of 0 links undone")
	run("identity", "unlink", "--day", yesterday).wants(t, cli.ExitOK, "0 of 0 links undone, of 0 users")
	run("identity", "unlink", "--day", today, "--weak").wants(t, cli.ExitOK, "0 of 0 links undone")
	answering("no\n", "identity", "unlink", "--day", today).wants(t, cli.ExitFailed, "This undoes 4 links of 2 users", "no link is undone: yes was not typed")
	run("identity", "unlink", "--day", today).wants(t, cli.ExitFailed, "no link is undone")
	broken.Store(true)
	answering("yes\n", "identity", "unlink", "--day", today).wants(t, cli.ExitFailed, "3 of 4 links undone, of 2 users", "link of a3 to ann: ", "1 link not undone, run the command again")
	run("identity", "show", "a3").wants(t, cli.ExitOK, "open")
	broken.Store(false)
	run("identity", "unlink", "--day", today, "--by", "request", "--yes", "--json").wants(t, cli.ExitOK, `"links": 1`, `"users": 1`, `"undone": 1`, `"failed": 0`)
	run("identity", "unlink", "--day", today, "--yes").wants(t, cli.ExitOK, "0 of 0 links undone")
	run("identity", "list", "--state", "open").wants(t, cli.ExitOK, "ANONYMOUS")
	if out := run("audit-log").out; strings.Count(out, "identity.unlink") != 5 {
		t.Errorf("4 links were undone by day, and one by its tokens: %s", out)
	}
}

// The links of a key are listed, and undone at once.
func TestUnlinkAKey(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(args, "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	_, err := s.Backends.CachedConfig.SetIdentity(t.Context(), "demo", config.Identity{Mode: config.IdentityCollect, Lookback: time.Hour}, 0)
	must(t, err)
	rawPost(t, s, "/1/events", `{"events":[{"eventType":"view","eventName":"Viewed","index":"i","userToken":"a1","authenticatedUserToken":"ann","objectIDs":["1"]}]}`)
	at := time.Now().UnixMilli()
	run("import", file(t, "events.ndjson", fmt.Sprintf(`{"eventType":"view","eventName":"Viewed","userToken":"a2","authenticatedUserToken":"ann","timestamp":%d,"filters":["brand:Acme"]}`, at))).
		wants(t, cli.ExitOK)
	must(t, s.Idle(t.Context()))
	run("identity", "link", "a3", "ann").wants(t, cli.ExitOK)
	key := config.Key{Hash: auth.Hash("demokey")}.ID()
	run("identity", "show", "ann").wants(t, cli.ExitOK, "KEY", "strong    "+key+"  1       event", "strong    -             0       request")
	run("identity", "list", "--by-key", key, "--json").wants(t, cli.ExitOK, `"userToken": "a1"`, `"userToken": "a2"`, `"key": "`+key+`"`)
	run("identity", "unlink", "--by-key", "mine", "--yes").wants(t, cli.ExitFailed, "key must be the ID of a key")
	run("identity", "unlink", "--by-key", "0123456789ab", "--yes").wants(t, cli.ExitOK, "0 of 0 links undone")
	run("identity", "unlink", "--by-key", key, "--yes").wants(t, cli.ExitOK, "2 of 2 links undone, of 1 user")
	run("identity", "list", "--state", "open", "-o", "csv").wants(t, cli.ExitOK, "a3")
}

// The operator switches links on in two steps.
func TestIdentityOfAnApp(t *testing.T) {
	app := onLocal(t, startEngine(t, stack.Options{}))
	app("create shop").wants(t, cli.ExitOK)
	app("identity shop").wants(t, cli.ExitOK, "app shop: tokens are not linked; begin with: affinity app identity shop --mode collect")
	app("identity shop --mode link").wants(t, cli.ExitFailed, `set the mode "collect" first`)
	app("identity shop --mode merge").wants(t, cli.ExitUsage, `--mode "merge": must be off, collect or link`)
	app("identity shop --mode collect --lookback 7d").wants(t, cli.ExitOK, "app shop: links are made since 20", "lookback 168h0m0s, evidence of the keys of servers")
	app("identity shop --mode link").wants(t, cli.ExitFailed, `processes may not know the mode "collect" yet, try again at 20`)
	app("identity shop --trust pages").wants(t, cli.ExitOK, "evidence of the keys of servers and pages")
	app("identity shop --serve person").wants(t, cli.ExitOK, "orders for anonymous tokens by those of the user who has signed in")
	app("identity shop --serve everybody").wants(t, cli.ExitUsage, `--serve "everybody": must be token or person`)
	app("identity nowhere").wants(t, cli.ExitFailed, "there is no such app")
}

// A preview says what would be linked, while links are off.
func TestIdentityPreview(t *testing.T) {
	s := startEngine(t, stack.Options{})
	run := func(args ...string) ran {
		return affinity(t, "", append(args, "--url", s.URL, "--app", "demo", "--key", "demokey")...)
	}
	run("identity", "preview").wants(t, cli.ExitOK, "no event has both tokens: nothing to link")
	line := `{"eventType":"view","eventName":"Viewed","userToken":"a1","authenticatedUserToken":"%s","timestamp":%d,"filters":["brand:Acme"]}`
	at := time.Now().UnixMilli()
	events := file(t, "events.ndjson", fmt.Sprintf(line, "ann", at-3000), fmt.Sprintf(line, "bob", at-2000), fmt.Sprintf(line, "nobody-1", at-90*24*3600*1000),
		fmt.Sprintf(line, "null", at-1000))
	run("import", events).wants(t, cli.ExitOK)
	run("identity", "preview").wants(t, cli.ExitOK, "3 events of 1 user in 30 days", "3 events of a userToken with another authenticatedUserToken: they link 1 token to 2 users",
		"2 users with 1 token", "1 link closed by the sign-in of another user", "1 event refused as value, such as a1 with null", "3 events of these tokens would count for the users")
	run("catalog", "import", "--index", "products", file(t, "objects.ndjson", `{"objectID":"1","brand":"Zeta"}`, `{"objectID":"2","brand":"Acme"}`)).wants(t, cli.ExitOK)
	run("strategy", "set", file(t, "strategy.json", `{"eventsScoring":[{"eventName":"Viewed","eventType":"view","score":1}],"facetsScoring":[{"facetName":"brand","score":100}],
		"personalizationImpact":100}`)).wants(t, cli.ExitOK)
	run("identity", "preview").wants(t, cli.ExitOK, "of 2 such users at random, 2 get another first object and 2 another order of the first ten, of 2 objects of products")
	run("identity", "preview", "--days", "100", "--json").wants(t, cli.ExitOK, `"evidence": 4`, `"users": 3`)
	run("identity", "preview", "--days", "0").wants(t, cli.ExitUsage, "--days 0: must be from 1 to 365")
	run("identity", "preview", "list").wants(t, cli.ExitOK, "linkpreview-", "done", "100")
	run("identity", "preview", "cancel", "none").wants(t, cli.ExitFailed, `No preview "none"`)
	run("audit-log").wants(t, cli.ExitOK, "identity.preview", "100 days")
	run("identity", "show", "ann").wants(t, cli.ExitOK, "ann: role none, 0 links")
}
