package stack_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/algolia/algoliasearch-client-go/v3/algolia/opt"
	"github.com/algolia/algoliasearch-client-go/v3/algolia/search"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
)

// A secured key of a user sends their events, reads their profile, ranks for them
// and renders their boosts. It opens nothing else, although its parent has every permission.
func TestSecuredKeyByRoute(t *testing.T) {
	s := start(t, stack.Options{})
	key := config.Key{Hash: auth.Hash("page"), ACL: []string{auth.Search}}
	must.Succeed(t, config.AddParent(t.Context(), s.Backends.Config, s.Backends.Cipher, "demo", key, "page"))
	secure := func(parent, user string) string {
		key, err := search.GenerateSecuredAPIKey(parent, opt.UserToken(user))
		must.Succeed(t, err)
		return key
	}
	check := func(key, method, path, body string, want error) {
		t.Helper()
		code, answer := callAs(t, s, "demo", key, method, path, body)
		if refused := code == http.StatusForbidden || code == http.StatusUnauthorized; refused != (want != nil) || want != nil && !strings.Contains(answer, want.Error()) {
			t.Errorf("%s %s %s: %d %s, want %v", method, path, body, code, answer, want)
		}
	}
	own := map[string]bool{
		"POST /1/events": true, "POST /v1/batch": true, "POST /v1/b": true, "POST /beacon/v1/batch": true, "POST /v1/track": true, "POST /v1/t": true, "GET /1/profiles/u": true, "POST /1/profiles/batch": true, "GET /1/profiles/personalization/u": true,
		"GET /1/explain/u": true, "POST /1/rank": true, "POST /1/recommend": true, "POST /1/recommend/1/indexes/*/recommendations": true, "GET /1/boosts/u?engine=algolia": true,
		"GET /1/consents/u": true, "PUT /1/consents/u": true, "DELETE /1/consents/u": true,
		"GET /1/feeds/f/suggested?userToken=u": true, "GET /1/feeds/f/latest?userToken=u": true,
	}
	u, v := secure("demokey", "u"), secure("demokey", "v")
	check(u, "POST", "/1/events", `{"events":[`+seenIn+`]}`, nil)
	check(v, "POST", "/1/events", `{"events":[`+seenIn+`]}`, auth.ErrUser)
	check(v, "POST", "/1/events", `{"events":[`+strings.Replace(seenIn, `"u"`, `"v"`, 1)+`,`+seenIn+`]}`, auth.ErrUser)
	check(v, "POST", "/1/events", `{"events":[`+strings.Replace(seenIn, "view", "instantsearch", 1)+`]}`, auth.ErrUser)
	check(v, "POST", "/1/profiles/batch", `{"userTokens":["v","u"]}`, auth.ErrUser)
	// The key is checked before the options: nothing is read for others.
	check(v, "POST", "/1/profiles/batch", `{"userTokens":["v","u"],"consistency":"unknown"}`, auth.ErrUser)
	for _, route := range routes {
		switch about := route.method + " " + route.path; {
		case route.path == "/1/events", route.path == "/1/boosts?engine=algolia":
		case own[about]:
			check(u, route.method, route.path, route.body, nil)
			check(v, route.method, route.path, route.body, auth.ErrUser)
		case strings.HasPrefix(route.path, "/1/identities/preview"):
			check(u, route.method, route.path, route.body, auth.ErrSecured)
		case strings.HasPrefix(route.path, "/1/profiles/"), strings.HasPrefix(route.path, "/1/usertokens"), strings.HasPrefix(route.path, "/1/optouts/"), strings.HasPrefix(route.path, "/1/users/"), strings.HasPrefix(route.path, "/1/identities"), route.path == "/1/events/refused",
			route.path == "/1/events/seen", route.path == "/1/events/recent",
			strings.HasPrefix(route.path, "/1/feeds"):
			check(u, route.method, route.path, route.body, auth.ErrAnyUser)
		default:
			check(u, route.method, route.path, route.body, auth.ErrSecured)
		}
	}
	// The user of a header counts as that of a path.
	for user, want := range map[string]int{"u": http.StatusOK, "v": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/1/boosts?engine=algolia", nil)
		must.Succeed(t, err)
		r.Header = http.Header{"X-Algolia-Application-Id": {"demo"}, "X-Algolia-Api-Key": {u}, "X-Algolia-Usertoken": {user}}
		response, err := http.DefaultClient.Do(r)
		must.Succeed(t, err)
		if response.Body.Close(); response.StatusCode != want {
			t.Errorf("boosts of the header's user %s with a key of u: %d, want %d", user, response.StatusCode, want)
		}
	}
	// Of a parent for web pages the user ranks, and reads only boosts.
	const rankU = `{"userToken":"u","index":"i","objectIDs":["1"]}`
	check(secure("page", "u"), "POST", "/1/rank", rankU, nil)
	check(secure("page", "u"), "GET", "/1/profiles/u", "", auth.ErrForbidden)
	check("page", "POST", "/1/rank", rankU, auth.ErrForbidden)
	check(secure("page", "u"), "GET", "/1/boosts/u?engine=algolia", "", nil)
	check("page", "GET", "/1/boosts/u?engine=algolia", "", auth.ErrForbidden)
	check(secure("page", "u"), "PUT", "/1/consents/u", `{"ads":true}`, nil)
	check(secure("page", "u"), "PUT", "/1/consents/v", `{"ads":true}`, auth.ErrUser)
	check("page", "PUT", "/1/consents/u", `{"ads":true}`, auth.ErrForbidden)
	check(secure("page", "u"), "GET", "/1/feeds/f/suggested?userToken=u", "", nil)
	check("page", "GET", "/1/feeds/f/suggested?userToken=u", "", auth.ErrForbidden)
	check(secure("page", "u"), "GET", "/1/feeds/f/suggested", "", nil) // of its user
	check(secure("page", "u"), "GET", "/1/feeds/f/latest", "", nil)
	check("page", "GET", "/1/feeds/f/latest", "", nil)
}

// The user of a secured key whose parent hashes tokens is the hash, as everywhere but in calls.
func TestSecuredKeyOfAParentThatHashes(t *testing.T) {
	s := start(t, stack.Options{})
	key := config.Key{Hash: auth.Hash("sdk"), ACL: []string{auth.Search}, HashTokens: true}
	must.Succeed(t, config.AddParent(t.Context(), s.Backends.Config, s.Backends.Cipher, "demo", key, "sdk"))
	secured, err := search.GenerateSecuredAPIKey("sdk", opt.UserToken(event.HashToken("ann@shop.example")))
	must.Succeed(t, err)
	for user, want := range map[string]int{"ann@shop.example": http.StatusOK, "bob@shop.example": http.StatusForbidden, event.HashToken("ann@shop.example"): http.StatusForbidden} {
		call := `{"event":"Product Viewed","userId":"` + user + `","properties":{"product_id":"1"}}`
		if code, answer := callAs(t, s, "demo", secured, "POST", "/v1/track?index=i", call); code != want {
			t.Errorf("a call of %s: %d %s, want %d", user, code, answer, want)
		}
	}
}
