package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// sections are the pages of the navigation, and the page of the app.
var sections = []string{"/", "/console/users", "/console/strategy", "/console/simulator", "/console/segments", "/console/data", "/console/jobs", appPath}

// Every page is there for an app without data, and says what to do.
func TestPagesWithoutData(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	for _, path := range sections {
		page := p.page(path)
		s.shows(page, "<h1>", `aria-current="page"`)
		s.lacks(page, "ZgotmplZ", "%!", "<nil>")
	}
	s.shows(p.page("/"), "No strategy is set, so every profile is empty", "No event has arrived in 30 days")
	s.shows(p.page("/console/jobs"), "No job is running.", "No job has run yet.")
	s.shows(p.page("/console/data"), "No events yet.", "Nothing has arrived in the last 15 minutes.")
}

func TestPagesWithData(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(60)
	p := s.login(key)
	for _, path := range sections {
		page := p.page(path)
		s.lacks(page, "ZgotmplZ", "%!", "<nil>")
		if len(page) > 60_000 {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
	s.shows(p.page("/"), "Version 1 is active", "People known", "Events a day", "No backtest has judged it yet", "curl -sS -H", "affinity usage")
	s.shows(p.page(appPath), "strategy.set", "left now.")
	s.shows(p.page("/console/data"), "Product Viewed", "categories.lvl0", "affinity events seen", "host: '"+s.stack.URL, "/client/v1.js", "shop.rank(", "/1/rank -H")
}

// What attackers write is a text on every page, and nothing else.
func TestPagesEscape(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fillHostile()
	p := s.login(key)
	paths := append([]string{"/console/users/attacked", "/console/users/" + url.PathEscape("attacker/1"), "/console/simulator?user=attacked&index=products"}, sections...)
	for _, path := range paths {
		s.lacks(p.page(path), raw...)
	}
	for _, text := range hostile {
		for _, path := range []string{"/console/users?user=", "/console/users?prefix=", "/console/simulator?user=", "/?done=", "/console/login?app="} {
			_, page := p.send("GET", path+url.QueryEscape(text), nil)
			s.lacks(page, raw...)
		}
		// A form gives people back what they typed themselves, to correct it.
		_, page := p.send("POST", "/console/login", url.Values{"app": {text}, "key": {text}})
		s.lacks(page, raw[:2]...)
		_, page = p.post("/console/data/event", url.Values{"type": {text}, "name": {text}, "user": {text}, "index": {text}, "about": {text}})
		s.lacks(page, raw[:2]...)
	}
}

// A page shows what the key permits, and no button for the rest.
func TestPagesFollowPermissions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(20)
	const reader = "a-key-that-only-reads-profiles"
	s.must(s.stack.Backends.Config.PutKey(t.Context(), "shop", config.Key{Hash: auth.Hash(reader), Name: "reader", ACL: []string{auth.ProfilesRead}}))
	p := s.login(reader)
	overview := p.page("/")
	s.shows(overview, "The key of this session lacks the permission usage", "reader")
	s.lacks(overview, "/console/audit")
	s.lacks(p.page("/console/jobs"), "/console/jobs/start")
	s.shows(p.page("/console/data"), "it needs a key with the permission admin")
	for path, form := range map[string]url.Values{
		"/console/audit": {}, "/console/jobs/start": {"kind": {"recompute"}}, "/console/jobs/cancel": {"kind": {"recompute"}, "id": {"strategy-1"}},
		"/console/data/import": {"lines": {"{}"}},
	} {
		s.shows(p.sent(http.StatusForbidden, path, form), "Not permitted")
	}
}

func TestTestEventAndImport(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.login(key)
	form := url.Values{"type": {"view"}, "name": {"Product Viewed"}, "user": {"me"}, "index": {"products"}, "about": {"brand:Acme, color:50 % red"}}
	page := p.sent(http.StatusOK, "/console/data/event", form)
	s.shows(page, "Accepted.", `href="/console/users/me"`, "affinity events send --type=view --name=&#39;Product Viewed&#39; --index=products --filter=brand:Acme --filter=&#39;color:50 %25 red&#39; me")
	s.idle()
	s.shows(p.page("/console/data"), "color:50 % red")
	form.Set("user", "a b")
	_, page = p.post("/console/data/event", form)
	s.shows(page, "The engine refused the event: UserToken must contain only")
	line := `{"eventType":"view","eventName":"Product Viewed","index":"products","userToken":"u","filters":["brand:Acme"],"timestamp":1795168800000}`
	_, page = p.post("/console/data/import", url.Values{"lines": {line + "\n{}\n" + `{"eventType":"<b>"}`}})
	s.shows(page, "1 line accepted, 2 refused", "Refused lines")
	_, page = p.post("/console/data/import", url.Values{"lines": {" "}})
	s.shows(page, "Choose a file, or paste lines")
}

func TestJobsFromThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(60)
	p := s.login(key)
	for _, kind := range []string{"recompute", "crowd", "reenrich"} {
		p.leads("/console/jobs/start", url.Values{"kind": {kind}}, "/console/jobs?done=started")
	}
	s.shows(p.page("/console/jobs?done=started"), "The job has been started.")
	page := p.sent(http.StatusConflict, "/console/jobs/start", url.Values{"kind": {"segments"}})
	s.shows(page, "Segments are off for this app")
	answer, body := p.post("/console/jobs/start", url.Values{"kind": {"backtest"}, "index": {"products"}})
	path := answer.Header.Get("Location")
	if !strings.HasPrefix(path, "/console/backtests/") {
		t.Fatalf("backtest: status %d: %s", answer.StatusCode, body)
	}
	for { // the job waits for the propagation of the configuration, and the test for the job
		s.idle()
		if page = p.page(path); !strings.Contains(page, "hx-trigger") {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("the backtest does not end")
		}
	}
	s.shows(page, "Best sellers of late", " over showing everybody ", "In the whole catalog", "nDCG@10", "nDCG is not sales", "What a lift means")
	s.shows(p.page("/console/jobs"), "Recompute of profiles", "Backtest", "Build of crowd statistics")
	p.sent(http.StatusUnprocessableEntity, "/console/jobs/start", url.Values{"kind": {"<b>"}})
	p.get(http.StatusNotFound, "/console/backtests/none")
	_, page = p.post("/console/audit", nil)
	s.shows(page, "profiles are equal")
}

// The overview says that nothing needs attention only if it could look at everything.
func TestOverviewThatCannotLook(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.must(s.engine.Events().Send(t.Context(), api.Event{EventType: "view", EventName: "Product Viewed", Index: "products", UserToken: "u", Filters: []string{"brand:Acme"}}))
	s.idle()
	page := s.as(auth.Usage).page("/")
	s.shows(page, "The console could not check strategy, statistics, folds, so it cannot tell")
	s.lacks(page, "Nothing needs attention", ">Fine<")
	page = s.as(auth.ProfilesRead).page("/")
	s.shows(page, "The console could not check strategy, events, refused, dead letters, ")
	s.lacks(page, ">Fine<")
	page = s.login(key).page("/")
	s.shows(page, "No strategy is set")
	s.lacks(page, "could not check", ">Fine<")
}

// The overview names the field of a value of the wrong type, and what an unknown name of a
// track call may be.
func TestOverviewOfRefusedEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.engine.Do(t.Context(), "POST", "/1/events", []byte(`{"events":[{"eventType":"view","eventName":"V","index":"i","objectIDs":["1"],"userToken":7}]}`))
	if err == nil || !strings.Contains(err.Error(), "422 Invalid type for field events: expected string, got number (userToken)") {
		t.Errorf("%v: want the field", err)
	}
	_, err = s.engine.Do(t.Context(), "POST", "/v1/track", []byte(`{"event":"Prodcut Viewed","userId":"ann","properties":{"product_id":"1"}}`))
	s.must(err)
	s.shows(s.login(key).page("/"), "Invalid type for field events: expected string, got number", "the field <code>userToken</code>",
		"the closest name with a type is &#34;Product Viewed&#34; (view)", "affinity events names")
}
