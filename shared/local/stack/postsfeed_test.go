package stack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/api/client"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// publicBlog starts an engine where the app blog has a host of its own, and shop has none. Both have
// the public feed blog with one post, and blog has the feed internal, which is not public.
func publicBlog(t *testing.T) *stack.Stack {
	t.Helper()
	s := start(t, stack.Options{ConfigTTL: time.Millisecond, Apps: []stack.App{{ID: "blog", Key: "blogkey"}, {ID: "shop", Key: "shopkey"}},
		Hosts: auth.Hosts{"blog.example": "blog", "other.example": "other"}})
	for app, host := range map[string]string{"blog": "blog.example", "shop": "localhost"} {
		do := func(method, path, body string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
			must.Succeed(t, err)
			r.Host = host
			r.Header = http.Header{"X-Algolia-Application-Id": {app}, "X-Algolia-Api-Key": {app + "key"}}
			if code, _, answer := send(t, r); code != http.StatusOK {
				t.Fatalf("%s %s: %d %s", method, path, code, answer)
			}
		}
		do("PUT", "/1/feeds/blog", `{"index":"posts","date":"at","format":"wordpress","public":true}`)
		do("PUT", "/1/feeds/internal", `{"index":"posts","date":"at","format":"wordpress"}`)
		record, err := json.Marshal(map[string]any{"objectID": "1", "at": time.Now().Add(-time.Hour).UnixMilli(), "margin": 7, "wordpress": `{"id":1}`})
		must.Succeed(t, err)
		do("POST", "/1/indexes/posts/batch", fmt.Sprintf(`{"requests":[{"action":"addObject","body":%s}]}`, record))
	}
	return s
}

func send(t *testing.T, r *http.Request) (code int, head http.Header, answer string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response.StatusCode, response.Header, string(body)
}

// Without a key anybody reads the latest posts of a public feed at the host of its app, in the
// format that its settings name, and nothing else.
func TestPublicFeed(t *testing.T) {
	s := publicBlog(t)
	const missing = "Invalid credentials"
	for _, test := range []struct {
		host, path string
		code       int
		want       string
	}{
		{"blog.example", "/1/feeds/blog/latest", 200, `[{"id":1}]`},
		{"blog.example:443", "/1/feeds/blog/latest?format=wordpress&per_page=5&_locale=user", 200, `[{"id":1}]`},
		{"blog.example", "/1/feeds/blog/latest?x-algolia-application-id=blog", 200, `[{"id":1}]`},
		{"blog.example", "/1/feeds/blog/latest?x-algolia-application-id=shop", 401, missing},
		{"blog.example", "/1/feeds/blog/latest?x-algolia-api-key=wrong", 401, missing},
		{"blog.example", "/1/feeds/blog/latest?format=records", 401, missing},
		{"blog.example", "/1/feeds/blog/latest?format=ids", 401, missing},
		{"blog.example", "/1/feeds/blog/suggested", 401, missing},
		{"blog.example", "/1/feeds/internal/latest", 401, missing},
		{"blog.example", "/1/feeds/none/latest", 401, missing},
		{"blog.example", "/1/feeds/blog", 401, missing},
		{"other.example", "/1/feeds/blog/latest", 401, missing},
		{"localhost", "/1/feeds/blog/latest", 401, missing},
		{"localhost", "/1/feeds/blog/latest?x-algolia-application-id=shop", 401, missing},
		{"localhost", "/1/feeds/blog/latest?x-algolia-application-id=blog", 401, missing},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+test.path, nil)
		must.Succeed(t, err)
		r.Host = test.host
		r.Header.Set(auth.CustomerHeader, "blog") // what a client says does not count
		if code, _, answer := send(t, r); code != test.code || !strings.Contains(answer, test.want) {
			t.Errorf("%s%s: %d %s, want %d with %s", test.host, test.path, code, answer, test.code, test.want)
		}
	}
}

// A person reads their suggested pages with a secured key alone: in the query, or in a cookie that
// only pages of the same site can send.
func TestSuggestedPostsByCookie(t *testing.T) {
	s := publicBlog(t)
	page := config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}}
	must.Succeed(t, config.AddParent(t.Context(), s.Backends.Config, s.Backends.Cipher, "blog", page, "page"))
	ann := client.SecuredKey("page", client.Secured{UserToken: "ann"})
	ended := client.SecuredKey("page", client.Secured{UserToken: "ann", ValidUntil: time.Unix(1, 0)})
	const path = "/1/feeds/blog/suggested"
	inQuery := "?x-algolia-api-key=" + url.QueryEscape(ann)
	for _, test := range []struct {
		what, query, cookie string
		header              http.Header
		code                int
	}{
		{"in the query", inQuery, "", nil, 200},
		{"for its user", inQuery + "&userToken=ann", "", nil, 200},
		{"for another user", inQuery + "&userToken=bob", "", nil, 403},
		{"in a cookie", "", ann, nil, 200},
		{"as a script writes it", "", url.PathEscape(ann), nil, 200},
		{"for another user, in a cookie", "?userToken=bob", ann, nil, 403},
		{"a page of the site", "", ann, http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://localhost"}}, 200},
		{"the address bar", "", ann, http.Header{"Sec-Fetch-Site": {"none"}}, 200},
		{"a page of another site", "", ann, http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"http://localhost"}}, 401},
		{"a script of another site", "", ann, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 401},
		{"a page in an old browser", "", ann, http.Header{"Origin": {"http://localhost"}}, 401},
		{"a key that has ended", "", ended, nil, 401},
		{"a key that is not secured", "", "blogkey", nil, 401},
		{"the query counts before the cookie", "?x-algolia-api-key=blogkey", ended, nil, 200},
		{"no key", "", "", nil, 401},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path+test.query, nil)
		must.Succeed(t, err)
		r.Host = "blog.example"
		if test.header != nil {
			r.Header = test.header
		}
		if test.cookie != "" {
			r.AddCookie(&http.Cookie{Name: auth.KeyCookie, Value: test.cookie})
		}
		code, head, answer := send(t, r)
		if code != test.code || code == 200 && answer != `[{"id":1}]` {
			t.Errorf("%s: %d %s, want %d", test.what, code, answer, test.code)
		}
		if head.Get("Cache-Control") != "private, no-store" || !strings.Contains(strings.Join(head.Values("Vary"), ","), "Cookie") {
			t.Errorf("%s: %v", test.what, head)
		}
		if origin := r.Header.Get("Origin"); origin != "" && (head.Get("Access-Control-Allow-Origin") != origin || head.Get("Access-Control-Allow-Credentials") != "true") {
			t.Errorf("%s: a page that sends credentials cannot read the answer: %v", test.what, head)
		}
	}
	// Elsewhere the cookie is no key, neither of other routes nor of the order latest.
	for _, path := range []string{"/1/feeds/internal/latest", "/1/profiles/ann", "/1/boosts/ann?engine=algolia"} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
		must.Succeed(t, err)
		r.Host = "blog.example"
		r.AddCookie(&http.Cookie{Name: auth.KeyCookie, Value: ann})
		if code, _, answer := send(t, r); code != http.StatusUnauthorized {
			t.Errorf("%s with the cookie: %d %s", path, code, answer)
		}
	}
}
