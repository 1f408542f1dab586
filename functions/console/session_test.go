package console

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// The console of these tests has the app shop. Its key s3cret-key has all permissions; that named
// like a permission has this one.
const (
	testApp = "shop"
	testKey = "s3cret-key"
)

func init() {
	pages = append(pages,
		page{pattern: "POST /console/test/change", load: func(*visit) (any, error) { return nil, done("/console/test/changed", "") }},
		page{pattern: "GET /console/test/problem", load: func(*visit) (any, error) { return nil, httpapi.Errorf(http.StatusNotFound, "No such thing") }},
		page{pattern: "GET /console/test/fault", load: func(*visit) (any, error) { return nil, errors.New("a fault with details") }},
		page{pattern: "GET /console/test/busy", poll: true, load: func(*visit) (any, error) {
			return nil, httpapi.Errorf(http.StatusServiceUnavailable, "Busy")
		}},
		page{pattern: "GET /console/test/crash", load: func(*visit) (any, error) { panic("a bug") }},
		page{pattern: "GET /console/test/what", template: "overview", load: func(v *visit) (any, error) {
			_, err := v.engine.Do(v.Context(), "GET", "/1/what", nil)
			return &overview{}, err
		}},
	)
}

// tested is a console for a test.
type tested struct {
	http.Handler
	t      *testing.T
	config *config.Store
	auth   *auth.Authenticator
	links  *Links
	log    *bytes.Buffer
	mu     sync.Mutex
	asked  []*http.Request // of the API
	all    bytes.Buffer    // bodies of all answers
	secret Secret
	fails  error // of the store of ended sessions
}

func newTest(t *testing.T) *tested {
	t.Helper()
	h := &tested{t: t, config: config.NewMemory(), links: NewLinks(time.Now), log: &bytes.Buffer{}, secret: NewSecret()}
	if err := h.config.CreateApp(t.Context(), config.App{ID: testApp}); err != nil {
		t.Fatal(err)
	}
	h.put(testKey, auth.All...)
	for _, permission := range auth.All {
		h.put(permission, permission)
	}
	h.auth = auth.New(config.NewCached(h.config, 0), auth.Environment{Hosts: auth.Hosts{"shop.example.com": testApp, "zoo.example.com": "zoo"}}, nil)
	h.Handler = h.instance()
	return h
}

// SessionEnded and EndSession are those of the configuration, unless it fails.
func (h *tested) SessionEnded(ctx context.Context, app, id string) (bool, error) {
	if h.fails != nil {
		return false, h.fails
	}
	return h.config.SessionEnded(ctx, app, id)
}

func (h *tested) EndSession(ctx context.Context, app, id string, now, end time.Time) error {
	if h.fails != nil {
		return h.fails
	}
	return h.config.EndSession(ctx, app, id, now, end)
}

// instance returns an instance of the function beside the others.
func (h *tested) instance() http.Handler {
	return New(Options{
		Log: slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Auth: h.auth, Secret: h.secret, Ended: h, Now: time.Now, Links: h.links,
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			h.asked = append(h.asked, r.WithContext(context.WithoutCancel(r.Context())))
			h.mu.Unlock()
			_ = httpapi.WriteJSON(w, http.StatusOK, struct{}{})
		}),
	})
}

func (h *tested) put(key string, acl ...string) {
	h.t.Helper()
	if err := h.config.PutKey(h.t.Context(), testApp, config.Key{Hash: auth.Hash(key), ACL: acl}); err != nil {
		h.t.Fatal(err)
	}
}

// do sends a request, with a form if there is one.
func (h *tested) do(method, path, form string, with ...func(*http.Request)) *httptest.ResponseRecorder {
	h.t.Helper()
	r := httptest.NewRequest(method, "https://console.example.com"+path, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, change := range with {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	h.all.WriteString(w.Body.String())
	return w
}

// login begins a session, and returns its cookie and what its forms send.
func (h *tested) login(key string) (c *http.Cookie, csrf string) {
	h.t.Helper()
	w := h.do("POST", "/console/login", url.Values{"app": {testApp}, "key": {key}}.Encode())
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 {
		h.t.Fatalf("the login is answered %d with %d cookies", w.Code, len(cookies))
	}
	s := newSessions(h.secret, time.Now)
	r := httptest.NewRequest("GET", "/", nil)
	r.AddCookie(cookies[0])
	of, err := s.of(r, cookieName)
	if err != nil {
		h.t.Fatal(err)
	}
	return cookies[0], s.token(of)
}

func as(c *http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(c) } }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestCookie(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	if c.Name != "__Host-affinity-console" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 8*60*60 {
		t.Errorf("the cookie is %+v", c)
	}
	again, _ := h.login(testKey)
	if c.Value == again.Value {
		t.Error("two sessions have the same cookie")
	}
	if w := h.do("GET", "/console/test/what", "", as(c)); w.Code != http.StatusOK {
		t.Errorf("with its cookie: %d %s", w.Code, w.Body)
	}
}

func TestNoSession(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	value := func(value string) *http.Cookie { return &http.Cookie{Name: cookieName, Value: value} }
	of := func(secret Secret, age time.Duration) *http.Cookie {
		_, sealed, err := newSessions(secret, func() time.Time { return time.Now().Add(-age) }).begin(auth.Session{App: testApp, Key: auth.Hash(testKey), Permissions: auth.All})
		if err != nil {
			t.Fatal(err)
		}
		return value(sealed)
	}
	forged, ended, late := of(NewSecret(), 0), of(h.secret, sessionLife), of(h.secret, sessionLife-time.Minute)
	if w := h.do("GET", "/console/test/what", "", as(late)); w.Code != http.StatusOK {
		t.Errorf("a minute before the end: %d", w.Code)
	}
	changed := []byte(c.Value)
	changed[len(changed)/2] ^= 1
	for name, c := range map[string]*http.Cookie{
		"tampered":          value(string(changed)),
		"cut":               value(c.Value[:len(c.Value)-4]),
		"short":             value("AAAA"),
		"empty":             value(""),
		"no base64":         value("%%"),
		"of another secret": forged,
		"of eight hours":    ended,
		"of another name":   {Name: "affinity-console", Value: c.Value},
	} {
		for _, method := range []string{"GET", "POST"} {
			path := map[string]string{"GET": "/console/test/what", "POST": "/console/test/change"}[method]
			w := h.do(method, path, "csrf=x", as(c))
			if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `action="/console/login"`) {
				t.Errorf("%s, %s: %d, want the login: %s", name, method, w.Code, w.Body)
			}
			w = h.do(method, path, "csrf=x", as(c), header("Hx-Request", "true"))
			if body := w.Body.String(); w.Code != http.StatusUnauthorized || !strings.HasPrefix(body, `<p class="problem" role="alert">Your session has ended.`) {
				t.Errorf("%s, %s of htmx: %d, want that the session has ended: %s", name, method, w.Code, body)
			}
		}
	}
	if w := h.do("GET", "/", ""); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "has ended") || len(w.Result().Cookies()) != 0 {
		t.Errorf("no cookie: %d %v", w.Code, w.Header())
	}
	if len(h.asked) != 1 {
		t.Errorf("%d requests were made of the API, want 1 of the session that goes on", len(h.asked))
	}
}

// A session ends with its key, and no longer permits what the key has lost.
func TestSessionOfARemovedKey(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	h.put(testKey, auth.Usage)
	if w := h.do("GET", "/console/test/what", "", as(c)); w.Code != http.StatusOK {
		t.Errorf("a key with fewer permissions: %d", w.Code)
	}
	if _, err := h.auth.Grant(h.asked[len(h.asked)-1], auth.Admin); !errors.Is(err, auth.ErrForbidden) {
		t.Errorf("a page of a key with fewer permissions may still: %v", err)
	}
	if err := h.config.DeleteKey(t.Context(), testApp, auth.Hash(testKey)); err != nil {
		t.Fatal(err)
	}
	w := h.do("GET", "/console/test/what", "", as(c))
	if w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "Your session has ended") {
		t.Errorf("a removed key: %d %s", w.Code, w.Body)
	}
	if gone := w.Result().Cookies(); len(gone) != 1 || gone[0].MaxAge >= 0 || gone[0].Name != cookieName {
		t.Errorf("the cookie stays: %v", gone)
	}
}

// A change needs what a page of the same session and origin sends.
func TestChanges(t *testing.T) {
	h := newTest(t)
	c, csrf := h.login(testKey)
	_, others := h.login(testKey)
	right := "csrf=" + csrf
	for name, test := range map[string]struct {
		form string
		with func(*http.Request)
		want int
	}{
		"a form of the session":          {right, header("Sec-Fetch-Site", "same-origin"), http.StatusSeeOther},
		"its origin":                     {right, header("Origin", "https://console.example.com"), http.StatusSeeOther},
		"a browser of old":               {right, func(*http.Request) {}, http.StatusSeeOther},
		"no token":                       {"a=b", func(*http.Request) {}, http.StatusForbidden},
		"an empty token":                 {"csrf=", func(*http.Request) {}, http.StatusForbidden},
		"a token of another session":     {"csrf=" + others, func(*http.Request) {}, http.StatusForbidden},
		"a token in the address":         {"a=b", func(r *http.Request) { r.URL.RawQuery = right }, http.StatusForbidden},
		"a page of another site":         {right, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"a page of the same site":        {right, header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"another origin":                 {right, header("Origin", "https://evil.example"), http.StatusForbidden},
		"the API's host as the origin":   {right, header("Origin", "https://api.example.com"), http.StatusForbidden},
		"a frame without an origin":      {right, header("Origin", "null"), http.StatusForbidden},
		"a form that is too large":       {right + "&a=" + strings.Repeat("a", maxForm), func(*http.Request) {}, http.StatusBadRequest},
		"a form that cannot be read":     {right + "&%", func(*http.Request) {}, http.StatusBadRequest},
		"a token in JSON, of no form":    {`{"csrf":"` + csrf + `"}`, header("Content-Type", "application/json"), http.StatusForbidden},
		"a form that another site sends": {right, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site"); r.Header.Set("Origin", "null") }, http.StatusForbidden},
	} {
		w := h.do("POST", "/console/test/change", test.form, as(c), test.with)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d", name, w.Code, test.want)
		}
	}
	if w := h.do("GET", "/console/test/change?csrf="+csrf, "", as(c)); w.Code != http.StatusNotFound {
		t.Errorf("a change by GET: %d", w.Code)
	}
	if w := h.do("POST", "/console/logout", "csrf=wrong", as(c)); w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 {
		t.Errorf("another site logs out: %d", w.Code)
	}
	w := h.do("POST", "/console/logout", right, as(c))
	if gone := w.Result().Cookies(); w.Code != http.StatusSeeOther || len(gone) != 1 || gone[0].MaxAge >= 0 || gone[0].Value != "" {
		t.Errorf("a logout: %d %v", w.Code, gone)
	}
}

// Pages of other origins neither read the console's answers nor frame them, and no cache keeps
// one. That goes for every answer.
func TestHeadersOfAllAnswers(t *testing.T) {
	h := newTest(t)
	c, csrf := h.login(testKey)
	for _, ask := range []struct {
		method, path, form string
		want               int
	}{
		{"GET", "/console/login", "", 200}, {"POST", "/console/login", "app=shop&key=x", 401}, {"POST", "/console/login", "%", 400},
		{"GET", "/console/open?code=x", "", 403}, {"HEAD", "/console/open?code=x", "", 200},
		{"GET", "/console/test/what", "", 200}, {"GET", "/console/test/problem", "", 404}, {"GET", "/console/test/fault", "", 500}, {"GET", "/console/test/crash", "", 500},
		{"POST", "/console/test/change", "csrf=" + csrf, 303}, {"POST", "/console/test/change", "", 403}, {"GET", "/console/test/change", "", 404},
		{"GET", "/console/nothing", "", 404}, {"GET", "/1/usage", "", 404}, {"POST", "/1/events", "", 404}, {"OPTIONS", "/console/login", "", 405}, {"GET", "/console/static/x.js", "", 404},
	} {
		w := h.do(ask.method, ask.path, ask.form, as(c))
		got := w.Header()
		if w.Code != ask.want || got.Get("Cache-Control") != "no-store" || got.Get("X-Content-Type-Options") != "nosniff" ||
			got.Get("Content-Security-Policy") != contentPolicy || got.Get("X-Frame-Options") != "DENY" || got.Get("Cross-Origin-Resource-Policy") != "same-origin" ||
			got.Get("Cross-Origin-Opener-Policy") != "same-origin" || got.Get("Referrer-Policy") != "same-origin" || got.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s %s: %d, want %d; %v", ask.method, ask.path, w.Code, ask.want, got)
		}
		if strings.Contains(w.Body.String(), "a fault with") || strings.Contains(w.Body.String(), "a bug") {
			t.Errorf("%s %s shows what failed", ask.method, ask.path)
		}
	}
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(contentPolicy, part) || strings.Contains(contentPolicy, "unsafe") {
			t.Errorf("the policy of content is %q", contentPolicy)
		}
	}
}

// Neither a key nor a cookie is in a page, in a line of the log, or in a request of a page.
func TestSecretsAreNotShown(t *testing.T) {
	h := newTest(t)
	h.do("POST", "/console/login", "app=shop&key=wr0ng-key")
	c, csrf := h.login(testKey)
	linked := h.do("GET", h.links.New(testApp, testKey), "").Result().Cookies()[0]
	for _, path := range []string{"/console/test/what", "/console/test/problem", "/console/test/fault", "/console/test/crash", "/console/login", "/console/nothing"} {
		h.do("GET", path, "", as(c))
		h.do("GET", path, "", as(linked))
	}
	h.do("POST", "/console/test/change", "csrf="+csrf, as(c))
	h.do("POST", "/console/test/change", "csrf=wrong", as(c))
	if !strings.Contains(h.log.String(), "a fault with details") || !strings.Contains(h.all.String(), "shop") {
		t.Fatalf("the log or the pages are missing: %s", h.log)
	}
	for name, secret := range map[string]string{"key": testKey, "hash": auth.Hash(testKey), "wrong key": "wr0ng-key", "cookie": c.Value, "cookie of the link": linked.Value} {
		if strings.Contains(h.all.String(), secret) {
			t.Errorf("a page holds the %s", name)
		}
		if strings.Contains(h.log.String(), secret) {
			t.Errorf("the log holds the %s", name)
		}
		for _, r := range h.asked {
			for header, values := range r.Header {
				if strings.Contains(strings.Join(values, " "), secret) {
					t.Errorf("a request of a page has the %s in %s", name, header)
				}
			}
		}
	}
	if len(h.asked) == 0 || h.asked[0].Header.Get("Cookie") != "" {
		t.Errorf("%d requests of pages; the cookie goes on to the API", len(h.asked))
	}
}

// The API knows keys and no cookies.
func TestCookieIsNoKey(t *testing.T) {
	h := newTest(t)
	c, _ := h.login(testKey)
	r := httptest.NewRequest("GET", "/1/usage", nil)
	r.AddCookie(c)
	r.Header.Set("X-Algolia-Application-Id", testApp)
	r.Header.Set(auth.CustomerHeader, testApp)
	for key, want := range map[string]error{"": auth.ErrMissing, "session": auth.ErrCredentials, c.Value: auth.ErrCredentials, auth.Hash(testKey): auth.ErrCredentials} {
		r.Header.Set("X-Algolia-API-Key", key)
		if g, err := h.auth.Grant(r, auth.Usage); !errors.Is(err, want) {
			t.Errorf("a cookie and the key %q permit %+v, %v", key, g, err)
		}
	}
}

func TestSecretOfSessions(t *testing.T) {
	var s Secret
	if err := s.UnmarshalText([]byte("q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\n")); err != nil || s == (Secret{}) {
		t.Errorf("what openssl prints: %v", err)
	}
	for _, text := range []string{"", "q83vEjRWeJCrze8SNFZ4kA==", "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrzQ==", "not base64"} {
		if err := s.UnmarshalText([]byte(text)); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v, want an error that does not repeat it", text, err)
		}
	}
}
