package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/web/auth"
)

func TestLogin(t *testing.T) {
	h := newTest(t)
	for name, c := range map[string]struct {
		app, key string
		want     int
		says     string
	}{
		"a key with all permissions": {testApp, testKey, 200, "Go on"},
		"a key for reading":          {testApp, auth.Recommendation, 200, "Go on"},
		"a key of an operator":       {testApp, auth.Admin, 200, "Go on"},
		"a key that sends events":    {testApp, auth.Search, 403, "This key only sends events"},
		"a wrong key":                {testApp, "wrong", 401, "do not belong together"},
		"the hash of a key":          {testApp, auth.Hash(testKey), 401, "do not belong together"},
		"another app":                {"zoo", testKey, 401, "do not belong together"},
		"an app that is no app":      {"<script>", testKey, 401, "&lt;script&gt;"},
		"no key":                     {testApp, "", 401, "do not belong together"},
		"the customer of any host":   {auth.AnyCustomer, testKey, 401, "do not belong together"},
	} {
		w := h.do("POST", "/console/login", url.Values{"app": {c.app}, "key": {c.key}}.Encode())
		cookies := w.Result().Cookies()
		if w.Code != c.want || !strings.Contains(w.Body.String(), c.says) || (len(cookies) == 1) != (c.want == 200) {
			t.Errorf("%s: %d with %d cookies, want %d and %q: %s", name, w.Code, len(cookies), c.want, c.says, w.Body)
		}
	}
}

// The key comes from the form, and from nowhere else; and the form from the console.
func TestLoginReadsItsForm(t *testing.T) {
	h := newTest(t)
	right := url.Values{"app": {testApp}, "key": {testKey}}.Encode()
	for name, c := range map[string]struct {
		form string
		with func(*http.Request)
		want int
	}{
		"keys in the address":    {"app=shop&key=wrong", func(r *http.Request) { r.URL.RawQuery = "x-algolia-application-id=shop&x-algolia-api-key=" + testKey }, 401},
		"fields in the address":  {"a=b", func(r *http.Request) { r.URL.RawQuery = right }, 401},
		"keys in headers":        {"app=shop&key=", func(r *http.Request) { r.Header.Set("X-Algolia-API-Key", testKey) }, 401},
		"another site":           {right, header("Sec-Fetch-Site", "cross-site"), 403},
		"another origin":         {right, header("Origin", "https://evil.example"), 403},
		"a frame without origin": {right, header("Origin", "null"), 403},
		"its own page":           {right, header("Origin", "https://console.example.com"), 200},
		"another customer":       {right, header(auth.CustomerHeader, "zoo"), 200}, // the load balancer's of a host that serves all
		"too large":              {right + "&a=" + strings.Repeat("a", maxDraftForm), func(*http.Request) {}, 400},
	} {
		if w := h.do("POST", "/console/login", c.form, c.with); w.Code != c.want || (len(w.Result().Cookies()) == 1) != (c.want == 200) {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
}

// A session of an app with a host of its own makes requests as that host does.
func TestSessionOfACustomer(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	h.do("GET", "/console/test/what", "", as(c), header(auth.CustomerHeader, auth.AnyCustomer))
	if len(h.asked) != 1 {
		t.Fatalf("%d requests", len(h.asked))
	}
	if g, err := h.auth.Grant(h.asked[0], auth.Admin); err != nil || g.App != testApp {
		t.Errorf("%+v, %v", g, err)
	}
}

// A link opens the console once, within ten minutes. What only looks at it does not use it up.
func TestLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTest(t)
		opens := func(path string) bool {
			w := h.do("GET", path, "")
			cookies := w.Result().Cookies()
			if (w.Code == http.StatusOK) != (len(cookies) == 1) || len(cookies) == 0 && w.Code != http.StatusForbidden && w.Code != http.StatusUnauthorized {
				t.Errorf("%d with %d cookies", w.Code, len(cookies))
			}
			return len(cookies) == 1
		}
		link := h.links.New(testApp, testKey)
		for range 3 {
			if w := h.do("HEAD", link, ""); w.Code != http.StatusOK || len(w.Result().Cookies()) != 0 {
				t.Errorf("HEAD: %d %v", w.Code, w.Header())
			}
		}
		time.Sleep(linkLife - time.Second)
		if !opens(link) || opens(link) {
			t.Error("a link does not open the console once")
		}
		link = h.links.New(testApp, testKey)
		time.Sleep(linkLife)
		if linkLife != 10*time.Minute || opens(link) || opens(link) {
			t.Error("a link opens the console after ten minutes")
		}
		if opens("/console/open") || opens("/console/open?code=") || opens(h.links.New(testApp, "wrong")) {
			t.Error("no link opens the console")
		}
		if one, other := h.links.New(testApp, testKey), h.links.New(testApp, testKey); one == other || len(one) < len("/console/open?code=")+26 || !opens(other) || !opens(one) {
			t.Errorf("two links: %s and %s", one, other)
		}
		// A deployment has no links.
		none := New(Options{Log: slog.New(slog.DiscardHandler), Auth: h.auth, Secret: h.secret, Ended: h, Now: time.Now})
		h.Handler = none
		if opens(link) {
			t.Error("a deployment has links")
		}
	})
}

// The login goes on to the page that was asked for, and to no other site.
func TestLoginGoesOn(t *testing.T) {
	h := newTest(t)
	const asked = "/console/users/a%2Fb?halfLife=7&x=%22"
	w := h.do("GET", asked, "")
	if want := `name="to" value="/console/users/a%2Fb?halfLife=7&amp;x=%22"`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("the login lacks %s: %s", want, w.Body)
	}
	form := func(to string) string {
		return url.Values{"app": {testApp}, "key": {testKey}, "to": {to}}.Encode()
	}
	for to, want := range map[string]string{
		asked: "/console/users/a%2Fb?halfLife=7&amp;x=%22", "": "/", "/": "/", "/1/events": "/", "//evil.example/console/": "/", "https://evil.example/console/": "/",
		"/console/\\evil.example": "/", "javascript:alert(1)": "/", "/console/users\r\nSet-Cookie: a=b": "/", "/console/" + strings.Repeat("a", maxTo): "/",
	} {
		w := h.do("POST", "/console/login", form(to))
		if refresh := `http-equiv="refresh" content="0; url=` + want + `"`; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), refresh) {
			t.Errorf("to %q: %d, want %s: %s", to, w.Code, refresh, w.Body)
		}
	}
	// A wrong key forgets nothing.
	w = h.do("POST", "/console/login", url.Values{"app": {testApp}, "key": {"wrong"}, "to": {"/console/jobs"}, "json": {`{"a":1}`}}.Encode())
	if body := w.Body.String(); !strings.Contains(body, `value="/console/jobs"`) || !strings.Contains(body, "{&#34;a&#34;:1}") {
		t.Errorf("after a wrong key: %s", body)
	}
}

// A person who follows a link of another program keeps their session, although the browser sends
// its cookie only once a page of the console asks.
func TestLinkOfAnotherProgram(t *testing.T) {
	h := newTest(t)
	w := h.do("GET", "/console/jobs", "", header("Sec-Fetch-Site", "cross-site"))
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, `content="0; url=/console/jobs"`) || strings.Contains(body, "csrf") {
		t.Errorf("from another site: %d %s", w.Code, body)
	}
	w = h.do("GET", "/console/jobs", "", header("Sec-Fetch-Site", "same-origin"))
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `action="/console/login"`) {
		t.Errorf("from the page itself: %d %s", w.Code, w.Body)
	}
}

// The draft of a strategy outlives the session in which it was made.
func TestDraftOutlivesItsSession(t *testing.T) {
	h := newTest(t)
	draft := url.Values{"json": {`{"eventsScoring":[],"note":"</textarea><script>"}`}, "csrf": {"old"}, "version": {"3"}}.Encode()
	w := h.do("POST", "/console/strategy/review", draft, header("Origin", "https://console.example.com"))
	body := w.Body.String()
	if w.Code != http.StatusUnauthorized || !strings.Contains(body, "&#34;note&#34;:&#34;&lt;/textarea&gt;") || strings.Contains(body, "<script>\"") {
		t.Fatalf("the login after the end: %d %s", w.Code, body)
	}
	w = h.do("POST", "/console/login", url.Values{"app": {testApp}, "key": {testKey}, "json": {`{"eventsScoring":[]}`}}.Encode())
	c, csrf := w.Result().Cookies()[0], csrfOf(t, w.Body.String())
	if body := w.Body.String(); strings.Contains(body, "refresh") || !strings.Contains(body, `action="/console/strategy"`) || !strings.Contains(body, "{&#34;eventsScoring&#34;:[]}") {
		t.Errorf("after the login: %s", body)
	}
	if w := h.do("POST", "/console/test/change", "csrf="+csrf, as(c)); w.Code != http.StatusSeeOther {
		t.Errorf("the form of that page belongs to another session: %d %s", w.Code, w.Body)
	}
	// What another site sends is not shown.
	w = h.do("POST", "/console/strategy", draft, header("Origin", "https://evil.example"))
	if body := w.Body.String(); w.Code != http.StatusUnauthorized || strings.Contains(body, "eventsScoring") {
		t.Errorf("from another site: %d %s", w.Code, body)
	}
	w = h.do("POST", "/console/strategy/preview", draft, header("Hx-Request", "true"))
	if body := w.Body.String(); w.Code != http.StatusUnauthorized || !strings.Contains(body, "press Preview to log in") {
		t.Errorf("of htmx: %d %s", w.Code, body)
	}
}

// So does one whose author has logged in again in another tab: it goes on in the new session.
func TestDraftOfAnotherTab(t *testing.T) {
	h := newTest(t)
	cookie, csrf := h.login(testKey)
	_, other := h.login(testKey)
	draft := func(csrf string) string {
		return url.Values{"json": {`{"eventsScoring":[],"note":"</textarea><script>"}`}, "csrf": {csrf}, "version": {"3"}}.Encode()
	}
	for _, path := range []string{"/console/strategy", "/console/strategy/review", "/console/strategy/publish", "/console/strategy/backtest", "/console/simulator"} {
		w := h.do("POST", path, draft(other), as(cookie))
		body := w.Body.String()
		if w.Code != http.StatusForbidden || !strings.Contains(body, "&#34;note&#34;:&#34;&lt;/textarea&gt;") || strings.Contains(body, "<script>\"") || csrfOf(t, body) != csrf || !strings.Contains(body, "<bdi>"+testApp+"</bdi>") {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
		if w := h.do("POST", path, draft(other), as(cookie), header("Origin", "https://evil.example")); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "eventsScoring") {
			t.Errorf("%s from another site: %d %s", path, w.Code, w.Body)
		}
		if w := h.do("POST", path, "csrf="+other, as(cookie)); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "another session") {
			t.Errorf("%s without a draft: %d %s", path, w.Code, w.Body)
		}
	}
	for path, says := range map[string]string{"/console/strategy/preview": "Your draft is still here: press Preview", "/console/simulator": "reload the page"} {
		w := h.do("POST", path, draft(other), as(cookie), header("Hx-Request", "true"))
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), says) || strings.Contains(w.Body.String(), "<html") {
			t.Errorf("%s of htmx: %d %s", path, w.Code, w.Body)
		}
	}
}

func csrfOf(t *testing.T, page string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, `name="csrf" value="`)
	token, _, _ := strings.Cut(after, `"`)
	if !ok || token == "" {
		t.Fatalf("no form: %s", page)
	}
	return token
}

// Engines on one machine keep their sessions apart, and Safari, which takes no secure cookie from
// them, gets another.
func TestCookiesOnOneMachine(t *testing.T) {
	h := newTest(t)
	const safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15"
	const chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
	local := func(r *http.Request) { r.Host, r.TLS = "localhost:8080", nil }
	for name, c := range map[string]struct {
		agent  string
		with   func(*http.Request)
		cookie string
		secure bool
	}{
		"deployed":         {chrome, func(*http.Request) {}, "__Host-affinity-console", true},
		"deployed, Safari": {safari, func(*http.Request) {}, "__Host-affinity-console", true},
		"a network, Safari": {safari, func(r *http.Request) {
			r.Host, r.TLS = "10.0.0.7:8080", nil
			r.Header.Set("X-Forwarded-Proto", "https")
		}, "__Host-affinity-console-8080", true},
		"the machine":         {chrome, local, "__Host-affinity-console-8080", true},
		"the machine, Safari": {safari, local, "affinity-console-8080", false},
	} {
		w := h.do("POST", "/console/login", url.Values{"app": {testApp}, "key": {testKey}}.Encode(), c.with, header("User-Agent", c.agent))
		got := w.Result().Cookies()[0]
		if got.Name != c.cookie || got.Secure != c.secure || !got.HttpOnly || got.SameSite != http.SameSiteStrictMode || got.Domain != "" {
			t.Errorf("%s: %+v, want %s", name, got, c.cookie)
		}
		if w := h.do("GET", "/console/test/what", "", as(got), c.with, header("User-Agent", c.agent)); w.Code != http.StatusOK {
			t.Errorf("%s: the session is not known again: %d", name, w.Code)
		}
	}
}

// At an address from which browsers keep no session nobody is asked for a key, and a link is not used up.
func TestLoginWhereNoSessionIsKept(t *testing.T) {
	h := newTest(t)
	at := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host, r.TLS = host, nil } }
	form := url.Values{"app": {testApp}, "key": {testKey}}.Encode()
	for host, tunnel := range map[string]string{
		"192.0.2.2:18232":       "ssh -L 18232:192.0.2.2:18232 192.0.2.2",
		"engine.lan":            "ssh -L 8080:engine.lan:80 engine.lan",
		"[2001:db8::1]:8080":    "ssh -L &#39;8080:[2001:db8::1]:8080&#39; 2001:db8::1",
		"0.0.0.0:8080":          "ssh -L 8080:localhost:8080 HOST",
		"[::]:8080":             "ssh -L 8080:localhost:8080 HOST",
		"localhost.example:80":  "ssh -L 80:localhost.example:80 localhost.example",
		"-oProxyCommand=x:8080": "ssh -L 8080:localhost:8080 HOST",
	} {
		link := h.links.New(testApp, testKey)
		for name, w := range map[string]*httptest.ResponseRecorder{
			"the login": h.do("GET", "/console/login", "", at(host)), "a page": h.do("GET", "/console/jobs", "", at(host)), "the form": h.do("POST", "/console/login", form, at(host)), "a link": h.do("GET", link, "", at(host)),
		} {
			body, here := w.Body.String(), "<code>http://localhost:"
			if name == "a link" {
				here = link
			}
			if w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 || strings.Contains(body, "<form") || !strings.Contains(body, "only over https, or at localhost") || !strings.Contains(body, tunnel+"</code>") || !strings.Contains(body, here) || strings.Contains(body, "has not been used") != (name == "a link") {
				t.Errorf("%s at %s: %d %v, want %q: %s", name, host, w.Code, w.Header(), tunnel, body)
			}
		}
		if w := h.do("GET", link, "", at("localhost:8080")); w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
			t.Errorf("the link of %s at localhost: %d", host, w.Code)
		}
	}
	for name, with := range map[string]func(*http.Request){
		"localhost":             at("localhost:8080"),
		"loopback":              at("127.0.0.1:8080"),
		"loopback by IPv6":      at("[::1]:8080"),
		"TLS":                   func(*http.Request) {},
		"a proxy that says so":  func(r *http.Request) { at("engine.lan")(r); r.Header.Set("X-Forwarded-Proto", "https") },
		"a proxy that does not": func(r *http.Request) { at("engine.lan")(r); r.Header.Set("Sec-Fetch-Site", "same-origin") },
	} {
		for _, w := range []*httptest.ResponseRecorder{h.do("POST", "/console/login", form, with), h.do("GET", h.links.New(testApp, testKey), "", with)} {
			if w.Code != http.StatusOK || len(w.Result().Cookies()) != 1 {
				t.Errorf("%s: %d with %d cookies: %s", name, w.Code, len(w.Result().Cookies()), w.Body)
			}
		}
	}
}

// What has no page, or cannot have one now, is answered as a page.
func TestRefusalsArePages(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"no route":       h.do("GET", "/nowhere", ""),
		"another method": h.do("DELETE", "/console/jobs", "", as(c)),
		"no file":        h.do("GET", "/console/static/none.js", ""),
		"loaded ahead":   h.do("GET", "/console/jobs", "", as(c), header("Sec-Purpose", "prefetch")),
		"a bug":          h.do("GET", "/console/test/crash", "", as(c)),
	} {
		if body := w.Body.String(); w.Code < 400 || !strings.HasPrefix(body, "<!doctype html>") || !strings.Contains(body, "To the console") {
			t.Errorf("%s: %d %s", name, w.Code, body)
		}
	}
	if w := h.do("GET", "/nowhere", "", header("Hx-Request", "true")); strings.Contains(w.Body.String(), "<html") {
		t.Errorf("htmx gets a whole page: %s", w.Body)
	}
}

// A part of a page that asks again and again stays as it is while the engine does not answer.
func TestPollsOutlastAnOutage(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	if w := h.do("GET", "/console/test/busy", "", as(c), header("Hx-Request", "true")); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
		t.Errorf("of htmx: %d %s", w.Code, w.Body)
	}
	if w := h.do("GET", "/console/test/busy", "", as(c)); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "Not now") {
		t.Errorf("of a person: %d %s", w.Code, w.Body)
	}
}
