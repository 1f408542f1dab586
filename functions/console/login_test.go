package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/affinityengine/affinity/shared/auth"
)

func TestLogin(t *testing.T) {
	h := newTest(t)
	for name, c := range map[string]struct {
		app, key string
		want     int
		says     string
	}{
		"a key with all rights":    {testApp, testKey, 200, "Go on"},
		"a key for reading":        {testApp, auth.Recommendation, 200, "Go on"},
		"a key of an operator":     {testApp, auth.Admin, 200, "Go on"},
		"a key that sends events":  {testApp, auth.Search, 403, "This key only sends events"},
		"a wrong key":              {testApp, "wrong", 401, "do not belong together"},
		"the hash of a key":        {testApp, auth.Hash(testKey), 401, "do not belong together"},
		"another app":              {"zoo", testKey, 401, "do not belong together"},
		"an app that is no app":    {"<script>", testKey, 401, "&lt;script&gt;"},
		"no key":                   {testApp, "", 401, "do not belong together"},
		"the customer of any host": {auth.AnyCustomer, testKey, 401, "do not belong together"},
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
		"too large":              {right + "&a=" + strings.Repeat("a", 16<<10), func(*http.Request) {}, 400},
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
		none := New(Options{Log: slog.New(slog.DiscardHandler), Auth: h.auth, Secret: h.secret, Now: time.Now})
		h.Handler = none
		if opens(link) {
			t.Error("a deployment has links")
		}
	})
}
