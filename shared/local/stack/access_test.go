package stack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/openapi"
)

const (
	addOne    = `{"requests":[{"action":"addObject","body":{"objectID":"1"}}]}`
	removeOne = `{"requests":[{"action":"deleteObject","body":{"objectID":"1"}}]}`
)

// routes are the public routes, each with the permissions that open it.
var routes = []struct {
	method, path, body string
	opens              []string
}{
	{"POST", "/1/events", `{"events":[]}`, []string{auth.Search}},
	{"POST", "/v1/batch", `{"batch":[` + seenCall + `]}`, []string{auth.Search}},
	{"POST", "/v1/b", `{"batch":[` + seenCall + `]}`, []string{auth.Search}},
	{"POST", "/beacon/v1/batch", `{"batch":[` + seenCall + `]}`, []string{auth.Search}},
	{"POST", "/v1/track", seenCall, []string{auth.Search}},
	{"POST", "/v1/t", seenCall, []string{auth.Search}},
	{"GET", "/1/events/refused", "", []string{auth.Recommendation}},
	{"GET", "/1/events/seen", "", []string{auth.Recommendation}},
	{"GET", "/1/events/recent", "", []string{auth.Admin}},
	{"POST", "/1/events/import", "", []string{auth.Admin}},
	{"GET", "/1/profiles/u", "", []string{auth.Recommendation, auth.ProfilesRead}},
	{"POST", "/1/profiles/batch", `{"userTokens":["u"]}`, []string{auth.Recommendation, auth.ProfilesRead}},
	{"GET", "/1/profiles/personalization/u", "", []string{auth.Recommendation, auth.ProfilesRead}},
	{"DELETE", "/1/profiles/u", "", []string{auth.Recommendation, auth.DeleteObject}},
	{"GET", "/1/usertokens", "", []string{auth.Admin}},
	{"GET", "/1/usertokens/recent", "", []string{auth.Admin}},
	{"DELETE", "/1/usertokens/u", "", []string{auth.DeleteObject}},
	{"GET", "/1/users/u/region", "", []string{auth.Admin}},
	{"PUT", "/1/users/u/region", `{"region":"us"}`, []string{auth.Admin}},
	{"GET", "/1/optouts/u", "", []string{auth.DeleteObject}},
	{"PUT", "/1/optouts/u", `{"eventTypes":["click"]}`, []string{auth.DeleteObject}},
	{"DELETE", "/1/optouts/u", "", []string{auth.DeleteObject}},
	{"GET", "/1/consents/u", "", []string{auth.DeleteObject}},
	{"PUT", "/1/consents/u", `{"ads":true}`, []string{auth.DeleteObject}},
	{"DELETE", "/1/consents/u", "", []string{auth.DeleteObject}},
	{"GET", "/1/identities", "", []string{auth.Admin}},
	{"GET", "/1/identities/u", "", []string{auth.Admin}},
	{"GET", "/1/identities/refused", "", []string{auth.Admin}},
	{"POST", "/1/identities/link", `{"userToken":"a1","authenticatedUserToken":"u"}`, []string{auth.Admin}},
	{"DELETE", "/1/identities/a1/links/u", "", []string{auth.Admin}},
	{"POST", "/1/identities/preview", "", []string{auth.Admin}},
	{"GET", "/1/identities/preview", "", []string{auth.Admin}},
	{"GET", "/1/identities/preview/linkpreview-1", "", []string{auth.Admin}},
	{"POST", "/1/identities/preview/linkpreview-1/cancel", "", []string{auth.Admin}},
	{"POST", "/1/rank", `{"userToken":"u","index":"i","objectIDs":["1"]}`, []string{auth.Recommendation}},
	{"POST", "/1/recommend", `{"model":"for-you","userToken":"u","index":"i"}`, []string{auth.Recommendation}},
	{"POST", "/1/recommend/1/indexes/*/recommendations", `{"requests":[{"indexName":"i","model":"recommended-for-you","threshold":0,"queryParameters":{"userToken":"u"}}]}`, []string{auth.Recommendation}},
	{"GET", "/1/boosts/u?engine=algolia", "", []string{auth.Recommendation}},
	{"GET", "/1/boosts?engine=algolia", "", []string{auth.Recommendation}},
	{"GET", "/1/feeds/f/suggested?userToken=u", "", []string{auth.Recommendation}},
	{"GET", "/1/feeds/f/latest?userToken=u", "", []string{auth.Recommendation, auth.Search}},
	{"GET", "/1/feeds", "", []string{auth.Settings}},
	{"PUT", "/1/feeds/f", `{"index":"i","date":"d"}`, []string{auth.Settings}},
	{"GET", "/1/feeds/f", "", []string{auth.Settings}},
	{"DELETE", "/1/feeds/f", "", []string{auth.Settings}},
	{"GET", "/1/strategies/personalization", "", []string{auth.Recommendation}},
	{"POST", "/1/strategies/personalization", seenStrategy, []string{auth.Recommendation}},
	{"POST", "/1/strategies/personalization/preview", `{"strategy":` + seenStrategy + `}`, []string{auth.Recommendation}},
	{"GET", "/1/strategies/personalization/versions", "", []string{auth.Recommendation}},
	{"GET", "/1/strategies/personalization/suggestion", "", []string{auth.Recommendation}},
	{"POST", "/1/strategies/personalization/restore", `{"version":1}`, []string{auth.Recommendation}},
	{"GET", "/1/explain/u", "", []string{auth.Recommendation, auth.ProfilesRead}},
	{"POST", "/1/audits", "", []string{auth.Admin}},
	{"GET", "/1/usage", "", []string{auth.Usage}},
	{"GET", "/1/audit-log", "", []string{auth.Admin}},
	{"GET", "/1/app", "", []string{auth.Admin}},
	{"GET", "/1/export/u", "", []string{auth.Admin}},
	{"GET", "/1/dump", "", []string{auth.Admin}},
	{"POST", "/1/recomputes", "", []string{auth.Admin}},
	{"GET", "/1/recomputes", "", []string{auth.Admin}},
	{"GET", "/1/recomputes/strategy-1", "", []string{auth.Admin}},
	{"POST", "/1/recomputes/strategy-1/cancel", "", []string{auth.Admin}},
	{"DELETE", "/1/recomputes/strategy-1", "", []string{auth.Admin}},
	{"GET", "/1/experiments", "", []string{auth.Settings}},
	{"GET", "/1/experiments/e", "", []string{auth.Settings}},
	{"PUT", "/1/experiments/e", `{"arms":[],"metric":"clicks"}`, []string{auth.Settings}},
	{"POST", "/1/experiments/e/stop", "", []string{auth.Settings}},
	{"POST", "/1/experiments/e/promote", `{"arm":"a"}`, []string{auth.Settings}},
	{"POST", "/1/backtests", "", []string{auth.Admin}},
	{"GET", "/1/backtests", "", []string{auth.Admin}},
	{"GET", "/1/backtests/backtest-1", "", []string{auth.Admin}},
	{"POST", "/1/backtests/backtest-1/cancel", "", []string{auth.Admin}},
	{"POST", "/1/reports", "", []string{auth.Admin}},
	{"GET", "/1/reports", "", []string{auth.Admin}},
	{"GET", "/1/reports/report-1", "", []string{auth.Admin}},
	{"POST", "/1/reports/report-1/cancel", "", []string{auth.Admin}},
	{"GET", "/1/experiments/holdout/report", "", []string{auth.Admin}},
	{"POST", "/1/reenrich", "", []string{auth.Admin}},
	{"GET", "/1/reenrich", "", []string{auth.Admin}},
	{"GET", "/1/reenrich/reenrich-1", "", []string{auth.Admin}},
	{"POST", "/1/reenrich/reenrich-1/cancel", "", []string{auth.Admin}},
	{"POST", "/1/crowd", "", []string{auth.Recommendation}},
	{"GET", "/1/crowd", "", []string{auth.Recommendation}},
	{"POST", "/1/crowd/manual-1/cancel", "", []string{auth.Recommendation}},
	{"POST", "/1/segments/query", `{"where":{"filter":"a:b"},"limit":0}`, []string{auth.Recommendation, auth.Admin}},
	{"POST", "/1/segments/query", `{"where":{"filter":"a:b"}}`, []string{auth.Admin}},
	{"GET", "/1/segments/histogram?facet=a&value=b", "", []string{auth.Recommendation, auth.Admin}},
	{"GET", "/1/values?facet=a", "", []string{auth.Recommendation, auth.Admin}},
	{"GET", "/1/segments", "", []string{auth.Recommendation, auth.Admin}},
	{"PUT", "/1/segments/vip", `{"where":{"filter":"a:b"}}`, []string{auth.Recommendation, auth.Admin}},
	{"GET", "/1/segments/vip", "", []string{auth.Recommendation, auth.Admin}},
	{"POST", "/1/segments/vip/export", "", []string{auth.Admin}},
	{"GET", "/1/segments/export/export-1", "", []string{auth.Admin}},
	{"GET", "/1/segments/export/export-1/file", "", []string{auth.Admin}},
	{"DELETE", "/1/segments/vip", "", []string{auth.Recommendation, auth.Admin}},
	{"POST", "/1/segments/refresh", "", []string{auth.Admin}},
	{"GET", "/1/segments/refresh/manual-1", "", []string{auth.Recommendation, auth.Admin}},
	{"GET", "/1/schema", "", []string{auth.Admin}},
	{"POST", "/1/schema/start", `{"to":"narrow"}`, []string{auth.Admin}},
	{"POST", "/1/schema/backfill", "", []string{auth.Admin}},
	{"POST", "/1/schema/verify", "", []string{auth.Admin}},
	{"POST", "/1/schema/cutover", "", []string{auth.Admin}},
	{"POST", "/1/schema/rollback", "", []string{auth.Admin}},
	{"POST", "/1/schema/drop", `{"schema":"wide"}`, []string{auth.Admin}},
	{"POST", "/1/imports/end", "", []string{auth.Admin}},
	{"POST", "/1/indexes/i/batch", addOne, []string{auth.AddObject}},
	{"POST", "/1/indexes/i/batch", removeOne, []string{auth.DeleteObject}},
	{"GET", "/1/indexes/i", "", []string{auth.AddObject}},
	{"GET", "/1/indexes/i/1", "", []string{auth.AddObject}},
	{"DELETE", "/1/indexes/i/1", "", []string{auth.DeleteObject}},
	{"GET", "/1/indexes/i/settings", "", []string{auth.Settings}},
	{"PUT", "/1/indexes/i/settings", `{"attributesForFaceting":[]}`, []string{auth.Settings}},
	{"GET", "/1/track-names", "", []string{auth.Settings}},
	{"PUT", "/1/track-names", `{"names":{}}`, []string{auth.Settings}},
	{"GET", "/1/indexes/i/task/1", "", []string{auth.AddObject, auth.DeleteObject, auth.Settings}},
}

func TestRightsByRoute(t *testing.T) {
	s := start(t, stack.Options{})
	for _, acl := range auth.All {
		key := config.Key{Hash: auth.Hash("key-" + acl), ACL: []string{acl}}
		must.Succeed(t, s.Backends.Config.PutKey(t.Context(), "demo", key))
	}
	for _, route := range routes {
		t.Run(route.method+" "+route.path, func(t *testing.T) {
			for _, acl := range auth.All {
				code, answer := callAs(t, s, "demo", "key-"+acl, route.method, route.path, route.body)
				forbidden := code == http.StatusForbidden
				if forbidden == slices.Contains(route.opens, acl) || code == http.StatusUnauthorized {
					t.Errorf("a key with %s: %d %s", acl, code, answer)
				}
			}
			for name, app := range map[string]string{"no credentials": "", "another app": "other"} {
				if code, answer := callAs(t, s, app, "demokey", route.method, route.path, route.body); code != http.StatusUnauthorized {
					t.Errorf("%s: %d %s, want 401", name, code, answer)
				}
			}
		})
	}
}

// TestDescribedPermissions compares the permissions above with those that the description
// of the API names.
func TestDescribedPermissions(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			ACL   []string `json:"x-acl"`
			NoKey bool     `json:"x-no-key"`
		} `json:"paths"`
	}
	must.Succeed(t, json.Unmarshal(openapi.Document(), &doc))
	paths, described, opens := http.NewServeMux(), map[string][]string{}, map[string][]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			pattern := strings.ToUpper(method) + " " + path
			paths.Handle(pattern, http.NotFoundHandler())
			if !op.NoKey {
				described[pattern] = slices.Sorted(slices.Values(op.ACL))
			}
		}
	}
	for _, route := range routes {
		_, pattern := paths.Handler(httptest.NewRequest(route.method, route.path, nil))
		all := append(opens[pattern], route.opens...)
		slices.Sort(all)
		opens[pattern] = slices.Compact(all)
	}
	if diff := cmp.Diff(opens, described); diff != "" {
		t.Errorf("permissions by route (-engine +described):\n%s", diff)
	}
}

// A customer's host serves only their app, and no other host serves it, whatever a
// client says.
func TestCustomerHosts(t *testing.T) {
	s := start(t, stack.Options{
		Apps:  []stack.App{{ID: "demo", Key: "demokey"}, {ID: "acme", Key: "acmekey"}},
		Hosts: auth.Hosts{"api.acme.example": "acme"},
	})
	for _, route := range routes {
		for _, test := range []struct {
			host, app string
			forbidden bool
		}{
			{"api.acme.example", "demo", true},
			{"API.acme.example:443", "demo", true},
			{"api.acme.example.", "demo", true},
			{"api.acme.example", "acme", false},
			{"localhost", "demo", false},
			{"127.0.0.1:1", "demo", false},
			{"localhost", "acme", true},
		} {
			r, err := http.NewRequestWithContext(t.Context(), route.method, s.URL+route.path, strings.NewReader(route.body))
			must.Succeed(t, err)
			r.Host = test.host
			r.Header.Set(auth.CustomerHeader, test.app)
			r.Header.Set("X-Algolia-Application-Id", test.app)
			r.Header.Set("X-Algolia-API-Key", test.app+"key")
			response, err := http.DefaultClient.Do(r)
			must.Succeed(t, err)
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if (response.StatusCode == http.StatusForbidden) != test.forbidden || response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusMisdirectedRequest {
				t.Errorf("%s %s at %s as %s: %d", route.method, route.path, test.host, test.app, response.StatusCode)
			}
		}
	}
}

func TestCredentialsInTheQuery(t *testing.T) {
	s := start(t, stack.Options{})
	code, answer := callAs(t, s, "", "", "POST", "/1/events?X-Algolia-Application-Id=demo&x-algolia-api-key=demokey&X-Algolia-Agent=insights-js%20(2.17.3)",
		`{"events":[{"eventType":"view","eventName":"Seen","index":"i","userToken":"u","filters":["color:Red"]}]}`)
	if code != http.StatusOK || !strings.Contains(answer, `"message":"OK"`) {
		t.Errorf("%d %s", code, answer)
	}
}
