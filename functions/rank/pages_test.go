package rank_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/local/functiontest"
)

// A key of a web page gets the order and nothing else, if the app permits it.
func TestPagesGetTheOrder(t *testing.T) {
	s := shop(t)
	h := rank.New(s.Backends.ForRank())
	const id = `"id":"0123456789abcdef0123456789abcdef"`
	page := func(rest string, status int, want string) functiontest.Request {
		return functiontest.Ask("search", "POST", "/1/rank", `{`+id+`,"userToken":"ann","index":"i","objectIDs":["blue","red"]`+rest+`}`, status, want)
	}
	functiontest.Check(t, h, page("", 403, "Method not allowed with this API key"), page(`,"impact":5`, 403, "Method not allowed with this API key"))
	if err := s.Backends.CachedConfig.SetBrowserRanking(t.Context(), functiontest.App, true); err != nil {
		t.Fatal(err)
	}
	checks := []functiontest.Request{
		page(`,"limit":5,"diversity":{"lambda":0.9},"explain":null,"seen":null`, 200, `{`+id+`,"items":[{"objectID":"red"},{"objectID":"blue"}]}`),
		page(`,"limit":0`, 422, "limit must be a positive integer"),
	}
	for option, value := range map[string]string{"impact": "100", "halfLife": "30", "explain": "false", "seen": `"keep"`, "strategy": "1"} {
		checks = append(checks, page(`,"`+option+`":`+value, 403, option+" is not allowed with this API key"))
	}
	functiontest.Check(t, h, checks...)
	if _, answer := functiontest.Call(h, "search", "POST", "/1/rank", `{`+id+`,"userToken":"ann","index":"i","objectIDs":["blue","red"]}`); answer !=
		`{`+id+`,"items":[{"objectID":"red"},{"objectID":"blue"}]}` {
		t.Errorf("a page gets %s, want the order alone", answer)
	}
	functiontest.Check(t, h, functiontest.Ask("profilesRead", "POST", "/1/rank", `{}`, 403, "Method not allowed with this API key"))
}

// The user may be in a header, where logs of URLs and bodies do not show it.
func TestUserInAHeader(t *testing.T) {
	h := rank.New(shop(t).Backends.ForRank())
	for _, test := range []struct {
		users  []string
		body   string
		status int
		want   string
	}{
		{[]string{"ann"}, `{"index":"i","objectIDs":["blue","red"]}`, 200, `"items":[{"objectID":"red","score":1},`},
		{[]string{"ann", "ann"}, `{"userToken":"ann","index":"i","objectIDs":["blue","red"]}`, 200, `"items":[{"objectID":"red","score":1},`},
		{[]string{"bob"}, `{"userToken":"ann","index":"i","objectIDs":["blue","red"]}`, 422, "name different users"},
		{[]string{"ann", "bob"}, `{"index":"i","objectIDs":["blue","red"]}`, 422, "name different users"},
		{[]string{"ann!"}, `{"index":"i","objectIDs":["blue","red"]}`, 422, "UserToken must contain only"},
		{[]string{""}, `{"index":"i","objectIDs":["blue","red"]}`, 422, "UserToken must contain only"},
	} {
		r := httptest.NewRequest("POST", "/1/rank", strings.NewReader(test.body))
		r.Header.Set("X-Algolia-Application-Id", functiontest.App)
		r.Header.Set("X-Algolia-API-Key", "recommendation")
		r.Header["X-Algolia-Usertoken"] = test.users
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("headers %q, body %s: %d %s, want %d %s", test.users, test.body, w.Code, w.Body, test.status, test.want)
		}
	}
}
