package stack_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
)

// The console of an engine on one machine: its link opens it once, its cookie opens no route of
// the API, and a page of another site reaches neither.
func TestConsole(t *testing.T) {
	s, err := stack.Start(t.Context(), stack.Options{Apps: []stack.App{{ID: "demo", Key: "demokey"}}}) // pages are in no description
	must.Succeed(t, err)
	must.CloseAtEnd(t, s)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path string, with func(*http.Request)) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		must.Succeed(t, err)
		if with != nil {
			with(r)
		}
		res, err := client.Do(r)
		must.Succeed(t, err)
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res
	}
	link := strings.TrimPrefix(s.ConsoleLink(stack.App{ID: "demo", Key: "demokey"}), s.URL)
	if res := ask("GET", link, func(r *http.Request) { r.Host = "evil.example" }); res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a link by another host: %d", res.StatusCode)
	}
	res := ask("GET", link, nil)
	if res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		t.Fatalf("the link: %d, %v", res.StatusCode, res.Cookies())
	}
	cookie := res.Cookies()[0]
	session := func(r *http.Request) { r.AddCookie(cookie) }
	if res := ask("GET", "/", session); res.StatusCode != http.StatusOK || res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("the first page: %d %v", res.StatusCode, res.Header)
	}
	if res := ask("GET", "/", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the first page without a session: %d", res.StatusCode)
	}
	for _, path := range []string{"/1/usage", "/1/strategies/personalization", "/1/export/ann", "/1/usertokens", "/1/audit-log", "/1/app", "/1/profiles/personalization/ann"} {
		if res := ask("GET", path, session); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with the cookie: %d, want 401", path, res.StatusCode)
		}
	}
	for _, path := range []string{"/", "/console/login", "/console/static/console.css"} {
		if res := ask("GET", path, func(r *http.Request) { session(r); r.Host = "evil.example" }); res.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s by another host: %d, want 421", path, res.StatusCode)
		}
		if res := ask("GET", path, func(r *http.Request) { session(r); r.Header.Set("Origin", "https://evil.example") }); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s for another site: %d, want 403", path, res.StatusCode)
		}
	}
}
