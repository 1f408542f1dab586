package rank_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	objects "github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
)

// shop starts a shop with three shirts, and a user who likes red.
func shop(t *testing.T) *stack.Stack {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring:         []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "color", Score: 10}, {FacetName: "size", Score: 1}},
		PersonalizationImpact: 50, Ranking: strategy.PlainRanking(),
	})
	const shirts = `{"requests":[{"action":"addObject","body":{"objectID":"blue","color":"Blue","size":"L"}},
		{"action":"addObject","body":{"objectID":"pink","color":["Red","White"]}},
		{"action":"addObject","body":{"objectID":"red","color":"Red"}}]}`
	functiontest.Do(t, catalog.New(s.Backends.ForCatalog()), "addObject", "POST", "/1/indexes/i/batch", shirts)
	const line = `{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","timestamp":1500000000000,"filters":["color:Red"]}`
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", line)
	return s
}

// ranked sends a request and decodes its answer.
func ranked(t *testing.T, h http.Handler, body string) api.RankAnswer {
	t.Helper()
	return functiontest.Answer[api.RankAnswer](t, h, "recommendation", "POST", "/1/rank", body)
}

// order is the order of an answer.
func order(a api.RankAnswer) []string {
	ids := []string{}
	for _, item := range a.Items {
		ids = append(ids, item.ObjectID)
	}
	return ids
}

func TestRank(t *testing.T) {
	h := rank.New(shop(t).Backends.ForRank())
	for body, want := range map[string][]string{
		`{"userToken":"ann","index":"i","objectIDs":["blue","pink","red"]}`:                                           {"red", "pink", "blue"},
		`{"userToken":"ann","index":"i","objectIDs":["blue","pink","red"],"limit":1}`:                                 {"red"},
		`{"userToken":"ann","index":"i","objectIDs":["pink","red","pink","red"]}`:                                     {"red", "pink"},
		`{"userToken":"ann","index":"i","objectIDs":[]}`:                                                              {},
		`{"userToken":"ann","index":"i","items":[]}`:                                                                  {},
		`{"userToken":"ann","index":"i","objectIDs":["none","red","\u0000","\ud800"]}`:                                {"red", "\x00", "none", "\uFFFD"},
		`{"userToken":"ann","index":"none","objectIDs":["red","blue"]}`:                                               {"blue", "red"},
		`{"userToken":"bob","index":"i","objectIDs":["red","blue"]}`:                                                  {"blue", "red"},
		`{"userToken":"ann","index":"i","objectIDs":["red"],"items":null,"limit":null,"impact":null,"halfLife":null}`: {"red"},
		`{"userToken":"ann","index":"i","objectIDs":["red"],"explain":null,"seen":null,"strategy":null,"id":null}`:    {"red"},
		items("ann", 50, 3, 2, 1):         {"pink", "blue", "red"}, // 0.25 + 0.5/sqrt(2), 0.5, 0.5
		items("ann", 0, 3, 2, 1):          {"blue", "pink", "red"},
		items("ann", 100, 3, 2, 1):        {"red", "pink", "blue"},
		items("ann", 0, 1e308, -1e308, 0): {"blue", "red", "pink"},
		items("ann", 0, 5, 5, 5):          {"blue", "pink", "red"}, // all equal: by objectID
		`{"userToken":"ann","index":"i","diversity":{"lambda":0.4},"objectIDs":["blue","pink","red"]}`:                            {"red", "blue", "pink"},
		`{"userToken":"ann","index":"i","objectIDs":["blue","pink","red"],"diversity":{"facet":"color","maxPerValue":1}}`:         {"red", "blue", "pink"},
		`{"userToken":"ann","index":"i","objectIDs":["pink","red"],"diversity":{"facet":"color","maxPerValue":1},"explain":true}`: {"red", "pink"},
		`{"userToken":"ann","index":"i","exclude":["red","none"],"objectIDs":["blue","pink","red"]}`:                              {"pink", "blue"},
		`{"userToken":"ann","index":"i","objectIDs":["blue","\u0072ed"],"exclude":["blue","red"]}`:                                {},
		`{"userToken":"ann","index":"i","items":[{"id":"red"},{"id":"blue"}],"exclude":["red"],"limit":1}`:                        {"blue"},
		`{"userToken":"ann","index":"i","strategy":1,"objectIDs":["blue","red"]}`:                                                 {"red", "blue"},
	} {
		got := ranked(t, h, body)
		if diff := cmp.Diff(want, order(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// items is a request with a relevancy for each shirt: blue, pink, red.
func items(user string, impact int, relevancies ...float64) string {
	r := api.RankRequest{UserToken: user, Index: "i", Impact: &impact}
	for i, id := range []string{"blue", "pink", "red"} {
		r.Items = append(r.Items, api.RankItem{ID: id, Fields: []api.RankField{{Name: api.FieldRelevancy, Value: relevancies[i]}}})
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// slowClient calls before, once, and then takes the first bytes of an answer.
type slowClient struct {
	*httptest.ResponseRecorder
	before func()
}

func (c *slowClient) Write(p []byte) (int, error) {
	if do := c.before; do != nil {
		c.before = nil
		do()
	}
	return c.ResponseRecorder.Write(p)
}

// An answer that is on its way to a client stays as it is while others are made.
func TestAnswersAtTheSameTime(t *testing.T) {
	h := rank.New(shop(t).Backends.ForRank())
	request := func(id string) *http.Request {
		return functiontest.NewRequest("recommendation", "POST", "/1/rank", `{"userToken":"ann","index":"i","objectIDs":["`+id+`"]}`)
	}
	slow := &slowClient{ResponseRecorder: httptest.NewRecorder()}
	slow.before = func() { h.ServeHTTP(httptest.NewRecorder(), request("of-another-user")) }
	h.ServeHTTP(slow, request("red"))
	if got := slow.Body.String(); slow.Code != http.StatusOK || !strings.Contains(got, `"objectID":"red"`) {
		t.Errorf("%d %s", slow.Code, got)
	}
}

func TestAnswer(t *testing.T) {
	h := rank.New(shop(t).Backends.ForRank())
	const id = "0123456789abcdefABCDEF0123456789"
	known := ranked(t, h, `{"id":"`+id+`","userToken":"ann","index":"i","objectIDs":["pink","blue"],"explain":true}`)
	if known.ID != id || known.Fallback != nil || known.CrowdAsOf != nil || known.StrategyVersion != 1 || known.ScoringVersion != 0 {
		t.Errorf("a known user: %+v", known)
	}
	want := []api.RankedItem{
		{ObjectID: "pink", Score: 1, Features: []api.RankFeature{{Name: "affinity", Value: 1, Parts: []api.RankPart{{Name: "color:Red", Value: 1}}}}},
		{ObjectID: "blue", Score: 0, Features: []api.RankFeature{}},
	}
	if diff := cmp.Diff(want, known.Items); diff != "" {
		t.Errorf("explained (-want +got):\n%s", diff)
	}
	unknown := ranked(t, h, `{"userToken":"bob","index":"i","objectIDs":["pink"]}`)
	if unknown.Fallback == nil || *unknown.Fallback != api.FallbackCatalog || len(unknown.ID) != 32 || unknown.Items[0].Features != nil {
		t.Errorf("an unknown user: %+v", unknown)
	}
	if again := ranked(t, h, `{"userToken":"bob","index":"i","objectIDs":["pink"]}`); again.ID == unknown.ID {
		t.Errorf("two requests have the id %s", again.ID)
	}
}

func TestRefusals(t *testing.T) {
	h := rank.New(shop(t).Backends.ForRank())
	const r = "recommendation"
	ask := func(body string, status int, want string) functiontest.Request {
		return functiontest.Ask(r, "POST", "/1/rank", body, status, want)
	}
	with := func(rest string) string { return `{"userToken":"ann","index":"i",` + rest + `}` }
	list := func(n int, id string) string {
		return `["` + strings.Join(strings.Split(strings.Repeat(id+",", n-1)+id, ","), `","`) + `"]`
	}
	functiontest.Check(t, h,
		functiontest.Ask("", "POST", "/1/rank", `{}`, 401, "Invalid credentials"),
		functiontest.Ask("search", "POST", "/1/rank", `{}`, 403, "Method not allowed with this API key"),
		functiontest.Ask(r, "GET", "/1/rank", "", 405, "Method Not Allowed"),
		functiontest.Ask(r, "POST", "/1/rank/ann", "{}", 404, "Path not supported"),
		functiontest.Ask(r, "POST", "/1/rank?limit=3", "{}", 422, `Unknown query option \"limit\"`),
		functiontest.Ask(r, "POST", "/1/rank?X-Algolia-Agent=me", with(`"objectIDs":[]`), 200, `"items":[]`),
		ask(``, 400, "Bad Request: the body is not valid JSON"),
		ask(`{`, 400, "Bad Request: the body is not valid JSON"),
		ask(`{"limit":"x"`, 400, "Bad Request: the body is not valid JSON"),
		ask(`{} {}`, 400, "there is more after the end of the JSON object"),
		ask("{\"index\":\"\xff\"}", 400, "the body is not valid UTF-8"),
		ask(`[]`, 422, "the body must be an object, got a list"),
		ask(`null`, 422, "the body must be an object, got null"),
		ask(`{}`, 422, "userToken is required"),
		ask(`{"userToken":"ann"}`, 422, "index is required"),
		ask(`{"userToken":null,"index":"i","objectIDs":[]}`, 422, "userToken is required"),
		ask(`{"userToken":"","index":"i","objectIDs":[]}`, 422, "UserToken must contain only"),
		ask(`{"userToken":"ann","index":"","objectIDs":[]}`, 422, "index must have 1 to 512 bytes"),
		ask(`{"userToken":"ann","index":"`+strings.Repeat("i", 513)+`","objectIDs":[]}`, 422, "index must have 1 to 512 bytes"),
		ask(with(`"limit":1`), 422, "the candidates are required: objectIDs, or items"),
		ask(with(`"objectIDs":null`), 422, "the candidates are required: objectIDs, or items"),
		ask(with(`"objectIDs":[],"items":[]`), 422, "the candidates must be in objectIDs or in items, not in both"),
		ask(with(`"variety":{"facet":"color"}`), 422, `Unknown field \"variety\"`),
		ask(with(`"objectIDs":[],"diversity":{}`), 200, `"items":[]`),
		ask(with(`"diversity":null,"objectIDs":[]`), 200, `"items":[]`),
		ask(with(`"objectIDs":[],"diversity":0.5`), 422, "diversity must be an object, got a number"),
		ask(with(`"objectIDs":[],"diversity":{"mode":"mmr"}`), 422, `Unknown field \"mode\" in diversity`),
		ask(with(`"objectIDs":[],"diversity":{"lambda":0}`), 422, "diversity.lambda must be above 0 and at most 1, got 0"),
		ask(with(`"objectIDs":[],"diversity":{"lambda":1,"lambda":1}`), 422, "diversity.lambda is there twice"),
		ask(with(`"objectIDs":[],"diversity":{"maxPerValue":2}`), 422, "diversity.maxPerValue needs diversity.facet"),
		ask(with(`"ObjectIDs":[]`), 422, `Unknown field \"ObjectIDs\"`),
		ask(with(`"limit":1,"limit":1`), 422, "limit is there twice"),
		ask(with(`"objectIDs":"red"`), 422, "objectIDs must be a list, got a string"),
		ask(with(`"objectIDs":[],"exclude":"red"`), 422, "exclude must be a list, got a string"),
		ask(with(`"objectIDs":[],"exclude":`+list(1001, "red")), 422, "exclude has more than 1000 objectIDs"),
		ask(with(`"objectIDs":["red",1]`), 422, "objectIDs[1] must be a string, got a number"),
		ask(with(`"objectIDs":[""]`), 422, "objectIDs[0] must have 1 to 512 bytes, got 0"),
		ask(with(`"objectIDs":["`+strings.Repeat("i", 513)+`"]`), 422, "objectIDs[0] must have 1 to 512 bytes, got 513"),
		ask(with(`"objectIDs":`+list(5000, "red")), 200, `"objectID":"red"`),
		ask(with(`"objectIDs":`+list(5001, "red")), 422, "a request has at most 5000 candidates"),
		ask(with(`"items":`+strings.ReplaceAll(list(5001, "x"), `"x"`, `{"id":"x"}`)), 422, "a request has at most 5000 candidates"),
		ask(with(`"objectIDs":["`+strings.Repeat("i", 10<<20)+`"]`), 413, "Request Entity Too Large"),
		ask(with(`"items":["red"]`), 422, "items[0] must be an object, got a string"),
		ask(with(`"items":[{}]`), 422, "items[0].id is required"),
		ask(with(`"items":[{"id":1}]`), 422, "items[0].id must be a string, got a number"),
		ask(with(`"items":[{"id":"red","label":1}]`), 422, `Unknown field \"label\" in items[0]`),
		ask(with(`"items":[{"id":"red"},{"id":"red","id":"blue"}]`), 422, "items[1].id is there twice"),
		ask(with(`"items":[{"id":"red","fields":{}}]`), 422, "items[0].fields must be a list, got an object"),
		ask(with(`"items":[{"id":"red","fields":[1]}]`), 422, "items[0].fields[0] must be an object, got a number"),
		ask(with(`"items":[{"id":"red","fields":[{}]}]`), 422, `items[0].fields[0].name must be relevancy, got \"\"`),
		ask(with(`"items":[{"id":"red","fields":[{"name":"price","value":1}]}]`), 422, `items[0].fields[0].name must be relevancy, got \"price\"`),
		ask(with(`"items":[{"id":"red","fields":[{"name":"relevancy"}]}]`), 422, "items[0].fields[0].value is required"),
		ask(with(`"items":[{"id":"red","fields":[{"name":"relevancy","value":"1"}]}]`), 422, "items[0].fields[0].value must be a number, got a string"),
		ask(with(`"items":[{"id":"red","fields":[{"name":"relevancy","value":1e999}]}]`), 422, `items[0].fields[0].value must be a finite number, got \"1e999\"`),
		ask(with(`"items":[{"id":"red","fields":[{"name":"relevancy","value":NaN}]}]`), 422, `items[0].fields[0].value must be a finite number, got NaN`),
		ask(with(`"items":[{"id":"red","fields":[{"name":"relevancy","value":-Infinity}]}]`), 422, `items[0].fields[0].value must be a finite number, got -Infinity`),
		ask(with(`"items":[{"id":"red","fields":[{"name":"relevancy","value":1},{"name":"relevancy","value":2}]}]`), 422, "items[0].fields[1] gives the relevancy of the item a second time"),
		ask(with(`"objectIDs":[],"limit":0`), 422, "limit must be a positive integer, got 0"),
		ask(with(`"objectIDs":[],"limit":1.0`), 422, "limit must be a positive integer, got 1.0"),
		ask(with(`"objectIDs":[],"impact":101`), 422, "impact must be an integer from 0 to 100, got 101"),
		ask(with(`"objectIDs":[],"impact":NaN`), 422, "impact must be a finite number, got NaN"),
		ask(with(`"objectIDs":[],"impact":"50"`), 422, "impact must be an integer from 0 to 100, got a string"),
		ask(with(`"objectIDs":[],"explain":1`), 422, "explain must be true or false, got a number"),
		ask(with(`"objectIDs":[],"seen":"hide"`), 422, `seen must be keep, demote or exclude, got \"hide\"`),
		ask(with(`"objectIDs":[],"id":"1"`), 422, `id must have 32 hexadecimal digits, got \"1\"`),
		ask(with(`"objectIDs":[],"halfLife":true`), 422, "halfLife: "),
		ask(with(`"objectIDs":[],"halfLife":"2x"`), 422, "halfLife: "),
		ask(with(`"objectIDs":[],"halfLife":30`), 422, "halfLife must be one of the strategy's halfLives: it has none"),
		ask(with(`"objectIDs":[],"strategy":0`), 422, "strategy must be the version of a strategy, 1 or higher, got 0"),
		ask(with(`"objectIDs":[],"strategy":7`), 422, "strategy 7 does not exist or is no longer kept"),
		ask(with(`"objectIDs":[],"draft":7`), 422, "draft must be a strategy, got a number"),
		ask(with(`"objectIDs":[],"draft":{}`), 422, "draft: eventsScoring is required"),
		ask(with(`"objectIDs":[],"draft":{"eventsScoring":[],"eventsScoring":[]}`), 422, "draft.eventsScoring is there twice"),
		ask(with(`"objectIDs":[],"draft":{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0},"strategy":1`), 422,
			"strategy names a version and draft brings a strategy: give one of them"),
		ask(with(`"objectIDs":[],"draft":{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0},"halfLife":30`), 422,
			"halfLife must be one of the strategy's halfLives: it has none"),
		ask(with(`"objectIDs":[],"draft":{"eventsScoring":[],"facetsScoring":[],"personalizationImpact":0`+strings.Repeat(" ", api.MaxStrategyBody)+`}`), 422,
			"draft must have at most 900000 bytes, got "),
	)
}

// Objects have the facets that the settings of their index name, also objects
// that were stored and ranked before.
func TestIndexSettings(t *testing.T) {
	s := shop(t)
	h := rank.New(s.Backends.ForRank())
	const body = `{"userToken":"ann","index":"i","objectIDs":["blue","red"]}`
	for settings, want := range map[string][]string{"color": {"red", "blue"}, "size": {"blue", "red"}} {
		if _, err := s.Backends.CachedConfig.SetIndexSettings(t.Context(), functiontest.App, "i", objects.Change{AttributesForFaceting: []string{settings}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, order(ranked(t, h, body))); diff != "" {
			t.Errorf("with the facet %s (-want +got):\n%s", settings, diff)
		}
	}
}

// Another version of the strategy ranks, while the first stays active.
func TestStrategyOfRequest(t *testing.T) {
	s := shop(t)
	h := rank.New(s.Backends.ForRank())
	size := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}},
		FacetsScoring: []strategy.FacetScore{{FacetName: "size", Score: 1}}, Ranking: strategy.PlainRanking(),
	}
	functiontest.SetStrategy(t, s, size)
	for version, want := range map[int][]string{1: {"red", "blue"}, 2: {"blue", "red"}} {
		got := ranked(t, h, fmt.Sprintf(`{"userToken":"ann","index":"i","objectIDs":["blue","red"],"strategy":%d}`, version))
		if diff := cmp.Diff(want, order(got)); diff != "" || got.StrategyVersion != int64(version) {
			t.Errorf("under strategy %d: version %d (-want +got):\n%s", version, got.StrategyVersion, diff)
		}
	}
}

// A draft ranks as the version that it becomes once it is stored. One draft is not taken for
// another, nor for the strategy of an app that has none.
func TestDraftOfRequest(t *testing.T) {
	s := shop(t)
	h := rank.New(s.Backends.ForRank())
	for facet, want := range map[string][]string{"size": {"blue", "red"}, "color": {"red", "blue"}} {
		for _, seen := range []string{"keep", "demote"} {
			got := ranked(t, h, fmt.Sprintf(`{"userToken":"ann","index":"i","objectIDs":["blue","red"],"seen":%q,"draft":{
				"eventsScoring":[{"eventName":"Seen","eventType":"view","score":3}],"facetsScoring":[{"facetName":%q,"score":1}],"personalizationImpact":50,
				"ranking":{"session":{"weight":0},"popularity":{"weight":0},"pairs":{"weight":0},"freshness":{"weight":0}}}}`, seen, facet))
			if diff := cmp.Diff(want, order(got)); diff != "" || got.StrategyVersion != 0 || got.ScoringVersion != 0 {
				t.Errorf("with %s, seen %s: versions %d and %d (-want +got):\n%s", facet, seen, got.StrategyVersion, got.ScoringVersion, diff)
			}
		}
	}
	if got := ranked(t, h, `{"userToken":"ann","index":"i","objectIDs":["blue","red"]}`); got.StrategyVersion != 1 {
		t.Errorf("after drafts version %d ranks, want 1", got.StrategyVersion)
	}
	if app, err := s.Backends.Config.App(t.Context(), functiontest.App); err != nil || app.StrategyVersion != 1 {
		t.Errorf("after drafts version %d is active, want 1; %v", app.StrategyVersion, err)
	}
}

// A key of a web page gets the order and nothing else, if the app permits it.
func TestPagesGetTheOrder(t *testing.T) {
	s := shop(t)
	h := rank.New(s.Backends.ForRank())
	const id = `"id":"0123456789abcdef0123456789abcdef"`
	page := func(rest string, status int, want string) functiontest.Request {
		return functiontest.Ask("search", "POST", "/1/rank", `{`+id+`,"userToken":"ann","index":"i","objectIDs":["blue","red"]`+rest+`}`, status, want)
	}
	functiontest.Check(t, h, page("", 403, "Method not allowed with this API key"), page(`,"impact":5`, 403, "Method not allowed with this API key"))
	must.Succeed(t, s.Backends.CachedConfig.SetBrowserRanking(t.Context(), functiontest.App, true))
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
		r := functiontest.NewRequest("recommendation", "POST", "/1/rank", test.body)
		r.Header["X-Algolia-Usertoken"] = test.users
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("headers %q, body %s: %d %s, want %d %s", test.users, test.body, w.Code, w.Body, test.status, test.want)
		}
	}
}
