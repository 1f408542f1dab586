package rank_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/rank/recommend"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

// walks are what users of a shop looked at, one object a minute.
var walks = map[string]string{
	"u1": "phone case1", "u2": "phone case1 cable", "u3": "phone case2", "u4": "case1 phone", "u5": "tv stand", "u6": "tv stand", "u7": "tv",
}

// walked starts a shop in which users have walked, with its statistics. Objects with a + between
// them they bought together.
func walked(t *testing.T, walks map[string]string) *stack.Stack {
	t.Helper()
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3},
			{EventName: "Seen", EventType: event.Conversion, Score: 3}},
		FacetsScoring:         []strategy.FacetScore{{FacetName: "brand", Score: 10}},
		PersonalizationImpact: 50, Ranking: strategy.PlainRanking(),
	})
	objects, brands := "", map[string]string{"phone": "Apple", "case1": "Apple", "case2": "Samsung", "cable": "Anker", "tv": "Samsung", "stand": "Anker", "rare": "Anker"}
	for _, walk := range walks {
		for _, id := range strings.FieldsFunc(walk, func(r rune) bool { return r == ' ' || r == '+' }) {
			brands[id] = cmp.Or(brands[id], "Other")
		}
	}
	for id, brand := range brands {
		objects += fmt.Sprintf(`,{"action":"addObject","body":{"objectID":%q,"brand":%q,"price":%d}}`, id, brand, 10*len(id))
	}
	functiontest.Do(t, catalog.New(s.Backends.ForCatalog()), "addObject", "POST", "/1/indexes/i/batch", `{"requests":[`+objects[1:]+`]}`)
	lines := ""
	for user, walk := range walks {
		for minute, id := range strings.Fields(walk) {
			kind, ids := event.View, strings.Split(id, "+")
			if len(ids) > 1 {
				kind = event.Conversion
			}
			lines += fmt.Sprintf(`{"eventType":%q,"eventName":"Seen","index":"i","userToken":%q,"timestamp":%d,"objectIDs":["%s"]}`+"\n",
				kind, user, s.Backends.Now().UnixMilli()-3_600_000+int64(minute)*60_000, strings.Join(ids, `","`))
		}
	}
	functiontest.Do(t, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", lines)
	if status, answer := functiontest.Call(admin.New(s.Backends.ForAdmin()), "recommendation", "POST", "/1/crowd", ""); status >= 300 {
		t.Fatalf("%d %s", status, answer)
	}
	must.Succeed(t, s.Idle(t.Context()))
	return s
}

// recommended writes the objects of an answer with their sources.
func recommended(t *testing.T, h http.Handler, body string) string {
	t.Helper()
	a := functiontest.Answer[api.RecommendAnswer](t, h, "recommendation", "POST", "/1/recommend", body)
	all := make([]string, len(a.Items))
	for i, item := range a.Items {
		all[i] = item.ObjectID + " " + item.Source
	}
	return strings.Join(all, ", ")
}

func TestRecommend(t *testing.T) {
	h := rank.New(walked(t, walks).Backends.ForRank())
	const i = `"index":"i"`
	for body, want := range map[string]string{
		// Two of four users turn from the phone to case1, one to case2, one goes on to the cable.
		`{"model":"next",` + i + `,"objectIDs":["phone"],"limit":3}`: "case1 sequence, case2 sequence, cable sequence",
		// Users of case1 turn to the phone as well.
		`{"model":"related",` + i + `,"objectIDs":["case1"],"limit":2}`: "phone sequence, cable sequence",
		`{"model":"next",` + i + `,"objectIDs":["tv"],"limit":1}`:       "stand sequence",
		// What fills up an answer has no relevancy: the strategy weighs no popularity, so by objectID.
		`{"model":"next",` + i + `,"objectIDs":["tv"],"limit":3}`: "stand sequence, cable popular, case1 popular",
		// The user likes Samsung, so case2 comes before case1.
		`{"model":"next",` + i + `,"objectIDs":["phone"],"userToken":"u7","impact":90,"limit":2}`: "case2 sequence, case1 sequence",
		`{"model":"for-you",` + i + `,"userToken":"u7","limit":2}`:                                "case2 likes, tv likes",
		`{"model":"for-you",` + i + `,"userToken":"u7","limit":1,"seen":"exclude"}`:               "case2 likes",
		`{"model":"for-you",` + i + `,"limit":2,"where":"brand:Anker"}`:                           "cable popular, stand popular",
		`{"model":"for-you",` + i + `,"limit":9,"where":"price < 30"}`:                            "tv popular",
		`{"model":"for-you",` + i + `,"limit":9,"where":{"not":{"filter":"price < 50"}}}`:         "cable popular, case1 popular, case2 popular, phone popular, stand popular",
		`{"model":"for-you",` + i + `,"limit":1,"exclude":["cable"]}`:                             "case1 popular",
		`{"model":"next",` + i + `,"objectIDs":["unknown"],"limit":1,"exclude":["cable"]}`:        "case1 popular",
		`{"model":"next",` + i + `,"objectIDs":["phone","tv"],"limit":2}`:                         "stand sequence, case1 sequence",
		// Four users looked at the phone within the hour, three at case1, three at the TV: above what a week makes one expect.
		`{"model":"trending",` + i + `,"limit":4}`:                         "phone trending, case1 trending, tv trending, cable popular",
		`{"model":"trending",` + i + `,"limit":1,"where":"brand:Samsung"}`: "tv trending",
		// rare has no events, so it comes after what is popular.
		`{"model":"for-you",` + i + `,"where":"brand:Anker AND price < 50"}`:          "rare catalog",
		`{"model":"next",` + i + `,"objectIDs":["phone"],"where":"price < 50"}`:       "tv popular, rare catalog",
		`{"model":"next",` + i + `,"objectIDs":["phone"],"limit":9,"exclude":["tv"]}`: "case1 sequence, case2 sequence, cable sequence, stand popular, rare catalog",
		`{"model":"for-you","index":"empty"}`:                                         "",
	} {
		if got := recommended(t, h, body); got != want {
			t.Errorf("%s:\n got %s\nwant %s", body, got, want)
		}
	}
}

func TestRecommendTogether(t *testing.T) {
	h := rank.New(walked(t, map[string]string{"u1": "tv+stand", "u2": "tv+stand cable", "u3": "cable+tv tv+stand", "u4": "tv case1"}).Backends.ForRank())
	for body, want := range map[string]string{
		`{"model":"together","index":"i","objectIDs":["tv"],"limit":2}`:         "stand bought, cable bought",
		`{"model":"together","index":"i","objectIDs":["stand"],"limit":2}`:      "tv bought, cable popular",
		`{"model":"together","index":"i","objectIDs":["cable","tv"],"limit":1}`: "stand bought",
	} {
		if got := recommended(t, h, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// TestRecommendEqualsDefinition compares what models about given objects bring in with links that are
// counted as the definition of statistics reads.
func TestRecommendEqualsDefinition(t *testing.T) {
	random, walks, users := rand.New(rand.NewPCG(1, 2)), map[string]string{}, [][]crowd.Event(nil)
	for user := range 60 {
		var walk []string
		var events []crowd.Event
		for minute := range 1 + random.IntN(8) {
			e := crowd.Event{Time: int64(minute) * 60_000}
			for range 1 + random.IntN(3)/2*random.IntN(3) {
				if id := fmt.Sprintf("o%02d", random.IntN(1+random.IntN(20))); !slices.Contains(e.ObjectIDs, id) {
					e.ObjectIDs = append(e.ObjectIDs, id)
				}
			}
			e.Bought = len(e.ObjectIDs) > 1
			walk, events = append(walk, strings.Join(e.ObjectIDs, "+")), append(events, e)
		}
		walks[fmt.Sprint("u", user)], users = strings.Join(walk, " "), append(users, events)
	}
	_, objects := crowd.Reference(users, 3_600_000, 7*86_400_000)
	h := rank.New(walked(t, walks).Backends.ForRank())
	for model, kinds := range map[recommend.Model][]crowd.Kind{recommend.Next: {crowd.Sequence}, recommend.Together: {crowd.Bought},
		recommend.Related: {crowd.Sequence, crowd.Together}} {
		for _, given := range [][]string{{"o00"}, {"o05"}, {"o12"}, {"o01", "o07"}, {"o03", "o02", "o19"}} {
			scores := map[string]float64{}
			for _, kind := range kinds {
				sums, top := map[string]float64{}, 0.0
				for _, a := range given {
					for _, p := range objects[a].Links[kind] {
						if kind == crowd.Together {
							sums[p.ObjectID] += float64(p.Count)
						} else {
							sums[p.ObjectID] += float64(p.Count) / float64(objects[a].Events)
						}
						top = max(top, sums[p.ObjectID])
					}
				}
				for id, sum := range sums {
					scores[id] += sum / top / float64(len(kinds))
				}
			}
			want := slices.DeleteFunc(slices.Collect(maps.Keys(scores)), func(id string) bool { return slices.Contains(given, id) })
			slices.SortFunc(want, func(a, b string) int {
				if math.Abs(scores[a]-scores[b]) > 1e-9 {
					return cmp.Compare(scores[b], scores[a])
				}
				return cmp.Compare(a, b)
			})
			body, _ := json.Marshal(api.RecommendRequest{Model: string(model), Index: "i", ObjectIDs: given, Limit: max(len(want), 1)})
			a := functiontest.Answer[api.RecommendAnswer](t, h, "recommendation", "POST", "/1/recommend", string(body))
			var got []string
			for _, item := range a.Items {
				if item.Source != recommend.Popular {
					got = append(got, item.ObjectID)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s of %v:\n got %v\nwant %v", model, given, got, want)
			}
		}
	}
}

// A filter that only objects with few events have fills up an answer, too.
func TestRecommendOfARareFilter(t *testing.T) {
	s := functiontest.Start(t)
	functiontest.SetStrategy(t, s, strategy.Strategy{PersonalizationImpact: 50, Ranking: strategy.PlainRanking()})
	const objects = 2500
	w := s.Backends.Store.Crowd.NewCrowdWriter(t.Context(), store.CrowdRef{App: functiontest.App, Index: "i", Generation: "g1"})
	counts := make([]crowd.Counted, objects)
	all := make([]store.Object, objects)
	for i := range counts {
		counts[i] = crowd.Counted{ObjectID: objectID(i), Count: float64(objects - i)}
		all[i] = store.Object{ID: objectID(i), Record: []byte("{}")}
	}
	rare := event.Filter{Facet: "brand", Value: "Rare"}
	for _, i := range []int{2000, 2400} { // behind the first thousand by count, and by objectID
		all[i].Filters.Filters = []event.Filter{rare}
	}
	must.Succeed(t, w.Counts(0, slices.Collect(crowd.PackCounts(counts))))
	must.Succeed(t, w.Liked(rare, crowd.AppendLiked(nil, []crowd.Scored{{ObjectID: objectID(2000), Score: 500}, {ObjectID: objectID(2400), Score: 100}})))
	must.Succeed(t, w.Flush())
	must.Succeed(t, s.Backends.Store.Catalog.PutObjects(t.Context(), functiontest.App, "i", all))
	_, err := crowd.SwapManifest(t.Context(), s.Backends.Store.Crowd, functiontest.App, "i", nil, crowd.Manifest{Current: crowd.Generation{
		Name: "g1", AsOf: s.Backends.Now().UnixMilli(), Objects: objects, Share: 1}})
	must.Succeed(t, err)
	h := rank.New(s.Backends.ForRank())
	for _, model := range []string{`"for-you"`, `"trending"`, `"related","objectIDs":["product-000001"]`} {
		body := `{"model":` + model + `,"index":"i","where":"brand:Rare AND NOT brand:None","limit":5}`
		if got, want := recommended(t, h, body), "product-002000 popular, product-002400 popular"; got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

// What a user does not grant for recommendations counts in other orders alone.
func TestRecommendAsksForConsent(t *testing.T) {
	s := shop(t)
	_, err := s.Backends.CachedConfig.SetPurposes(t.Context(), functiontest.App, []consent.Purpose{
		{Name: "orders", Default: true, Surfaces: []consent.Surface{consent.Rank}}, {Name: "recommendations", Surfaces: []consent.Surface{consent.Recommend}},
	})
	must.Succeed(t, err)
	h := rank.New(s.Backends.ForRank())
	if a := ranked(t, h, `{"userToken":"ann","index":"i","objectIDs":["blue","red"]}`); a.Fallback != nil || order(a)[0] != "red" {
		t.Errorf("rank: %+v", a)
	}
	a := functiontest.Answer[api.RecommendAnswer](t, h, "recommendation", "POST", "/1/recommend", `{"model":"for-you","index":"i","userToken":"ann"}`)
	if a.Fallback == nil || a.Items[0].ObjectID != "blue" {
		t.Errorf("recommend: %+v", a)
	}
}

// An explanation counts the events of the given objects that the statistics know.
func TestRecommendExplains(t *testing.T) {
	h := rank.New(walked(t, walks).Backends.ForRank())
	for body, want := range map[string]string{
		`"next","objectIDs":["phone","unknown"],"explain":true`: `"given":[{"objectID":"phone","events":4}],"items":[{"objectID":"case1","source":"sequence"`,
		`"next","objectIDs":["unknown"],"explain":true`:         `"given":[],"items":[`,
		`"next","objectIDs":["phone"]`:                          `"fallback":"catalog","items":[`,
		`"for-you","userToken":"u7","explain":true`:             `"fallback":null,"items":[`,
	} {
		functiontest.Check(t, h, functiontest.Ask("recommendation", "POST", "/1/recommend", `{"index":"i","model":`+body+`}`, 200, want))
	}
}

// An index without statistics gives objects of its catalog, in the order of the user.
func TestRecommendWithoutStatistics(t *testing.T) {
	h := rank.New(shop(t).Backends.ForRank())
	for body, want := range map[string]string{
		`{"model":"for-you","index":"i","userToken":"ann"}`:                     "red catalog, pink catalog, blue catalog",
		`{"model":"related","index":"i","objectIDs":["red"],"userToken":"ann"}`: "pink catalog, blue catalog",
		`{"model":"for-you","index":"i","exclude":["pink","red"],"where":null}`: "blue catalog",
	} {
		if got := recommended(t, h, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

func TestRecommendRefuses(t *testing.T) {
	for _, m := range recommend.Models {
		if !strings.Contains("related, together, next, trending, for-you", string(m)) {
			t.Errorf("the messages of this test do not name %s", m)
		}
	}
	s := shop(t)
	h := rank.New(s.Backends.ForRank())
	many := strings.Repeat(`,"a"`, 51)[1:]
	ask := func(body string, status int, message string) functiontest.Request {
		written, _ := json.Marshal(message) // as it stands in the answer
		return functiontest.Ask("recommendation", "POST", "/1/recommend", body, status, strings.Trim(string(written), `"`))
	}
	functiontest.Check(t, h,
		functiontest.Ask("", "POST", "/1/recommend", `{}`, 401, "Invalid credentials"),
		functiontest.Ask("recommendation", "GET", "/1/recommend", "", 405, "Method Not Allowed"),
		ask(`{`, 400, "Bad Request: the body is not valid JSON: unexpected EOF after offset 1"),
		ask(`{}`, 422, "model is required: one of related, together, next, trending, for-you"),
		ask(`{"model":"similar","index":"i"}`, 422, `model must be one of related, together, next, trending, for-you, got "similar"`),
		ask(`{"model":7,"index":"i"}`, 422, `model must be a string, got a number`),
		ask(`{"model":"for-you"}`, 422, `index is required`),
		ask(`{"model":"related","index":"i"}`, 422, `objectIDs is required: the objects for which related recommends others`),
		ask(`{"model":"for-you","index":"i","objectIDs":["a"]}`, 422, `objectIDs is not for the model for-you: leave it out, or name in exclude what the answer must not have`),
		ask(`{"model":"next","index":"i","objectIDs":[`+many+`]}`, 422, `objectIDs has more than 50 objectIDs`),
		ask(`{"model":"next","index":"i","objectIDs":[""]}`, 422, `objectIDs[0] must have 1 to 512 bytes, got 0`),
		ask(`{"model":"for-you","index":"i","limit":1001}`, 422, `limit must be at most 1000, got 1001`),
		ask(`{"model":"for-you","index":"i","where":"brand"}`, 422, `where ends at byte 6: want a colon or one of < <= = != >= > after "brand"`),
		ask(`{"model":"for-you","index":"i","where":7}`, 422, `where must be an object with exactly one of "and", "or", "not" and "filter"`),
		ask(`{"model":"for-you","index":"i","items":[]}`, 422, `Unknown field "items"`),
		ask(`{"model":"for-you","index":"i","count":5}`, 422, `Unknown field "count"`),
		ask(`{"model":"for-you","index":"i","userToken":"a b"}`, 422, "UserToken must contain only alphanumeric, equal, plus, slash, hyphen, or underscore characters, and be between 1 and 129 characters long"),
		ask(`{"model":"for-you","index":"i","strategy":7}`, 422, "strategy 7 does not exist or is no longer kept"),
	)
	must.Succeed(t, s.Backends.CachedConfig.SetBrowserRanking(t.Context(), functiontest.App, true))
	functiontest.Check(t, h, functiontest.Ask("search", "POST", "/1/recommend", `{"model":"for-you","index":"i","explain":true}`, 403,
		"explain is not allowed with this API key: the permission search alone gets the order of objects"))
	const id = `"id":"4f1c2a0d9b7e4c63a5d8f0e1b2c3d4e5"`
	want := `{` + id + `,"items":[{"objectID":"blue"}]}`
	if _, got := functiontest.Call(h, "search", "POST", "/1/recommend", `{"model":"for-you","index":"i","limit":1,`+id+`}`); got != want {
		t.Errorf("the order of a page: %s, want %s", got, want)
	}
}

// The newest objects come in, however many others there are, if a feed goes by their date.
func TestRecommendNew(t *testing.T) {
	s := functiontest.Start(t)
	fresh := strategy.PlainRanking()
	fresh.Freshness.Attribute, *fresh.Freshness.Weight = "at", 100
	functiontest.SetStrategy(t, s, strategy.Strategy{PersonalizationImpact: 50, Ranking: fresh})
	now := s.Backends.Now()
	all := []store.Object{
		{ID: "zold", Record: fmt.Appendf(nil, `{"at":%d}`, now.Add(-48*time.Hour).UnixMilli())},
		{ID: "znew", Record: fmt.Appendf(nil, `{"at":%d}`, now.Add(-time.Hour).UnixMilli())},
		{ID: "zsoon", Record: fmt.Appendf(nil, `{"at":%d}`, now.Add(time.Hour).UnixMilli())},
	}
	for i := range 1100 {
		all = append(all, store.Object{ID: objectID(i), Record: []byte("{}")})
	}
	must.Succeed(t, s.Backends.Store.Catalog.PutObjects(t.Context(), functiontest.App, "i", all, "at"))
	const body = `{"model":"for-you","index":"i","limit":3}`
	if got, want := recommended(t, rank.New(s.Backends.ForRank()), body), "product-000000 catalog, product-000001 catalog, product-000002 catalog"; got != want {
		t.Errorf("without a feed: got %s, want %s", got, want)
	}
	setFeed(t, s, "news", `{"index":"i","date":"at"}`)
	h := rank.New(s.Backends.ForRank())
	for body, want := range map[string]string{
		body: "znew new, zold new, product-000000 catalog",
		`{"model":"for-you","index":"i","limit":1,"exclude":["znew"]}`: "zold new",
		`{"model":"next","objectIDs":["zold"],"index":"i","limit":1}`:  "product-000000 catalog",
		`{"model":"for-you","index":"empty","limit":1}`:                "",
	} {
		if got := recommended(t, h, body); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}

const hitsPath = "/1/recommend/1/indexes/*/recommendations"

// Clients of Algolia get records with the strength of their links, and what is too weak only if they ask for it.
func TestRecommendHits(t *testing.T) {
	h := rank.New(walked(t, walks).Backends.ForRank())
	for request, want := range map[string]string{
		// Of Apple are phone and case1: 76 / ((100 + 77) / root of 2) is 61 %.
		`"trending-items","threshold":0,"maxRecommendations":3`:                                                             "phone 100, case1 77, tv 76",
		`"related-products","objectID":"tv","threshold":0`:                                                                  "stand 100",
		`"related-products","objectID":"phone","maxRecommendations":2,"threshold":0`:                                        "case1 100, case2 53",
		`"related-products","objectID":"phone","threshold":60`:                                                              "case1 100",
		`"bought-together","objectID":"unknown","threshold":0`:                                                              "",
		`"bought-together","objectID":"unknown","threshold":50,"maxRecommendations":1,"fallbackParameters":{}`:              "cable 0",
		`"trending-items","threshold":0,"facetName":"brand","facetValue":"Anker"`:                                           "",
		`"trending-facets","threshold":0,"facetName":"brand"`:                                                               "Apple 100, Samsung 61",
		`"related-products","objectID":"phone","queryParameters":{"filters":"brand:Anker OR price < 30"}`:                   "cable 34",
		`"recommended-for-you","threshold":90,"maxRecommendations":2,"queryParameters":{"userToken":"u7","analytics":true}`: "case2, tv",
	} {
		body := `{"requests":[{"indexName":"i","model":` + request + `}]}`
		a := functiontest.Answer[struct {
			Results []struct {
				Hits []struct {
					ObjectID, FacetValue string
					Score                *float64 `json:"_score"`
				}
				NbHits  int
				QueryID string
			}
		}](t, h, "recommendation", "POST", hitsPath, body)
		var all []string
		for _, hit := range a.Results[0].Hits {
			text := hit.ObjectID + hit.FacetValue
			if hit.Score != nil {
				text += fmt.Sprintf(" %.0f", *hit.Score)
			}
			all = append(all, text)
		}
		if got := strings.Join(all, ", "); got != want || a.Results[0].NbHits != len(all) || len(a.Results[0].QueryID) != 32 {
			t.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
	one := `{"indexName":"i","model":"related-products","objectID":"tv","threshold":0,"queryParameters":{"attributesToRetrieve":["brand"]}}`
	ask := func(key, body string, status int, want string) functiontest.Request {
		return functiontest.Ask(key, "POST", hitsPath, body, status, want)
	}
	with := func(more string) string {
		return `{"requests":[{"indexName":"i","model":"related-products","objectID":"tv",` + more + `}]}`
	}
	const r = "recommendation"
	functiontest.Check(t, h,
		ask(r, `{"requests":[`+one+`,`+one+`]}`, 200, `{"results":[{"hits":[{"_score":100,"objectID":"stand","brand":"Anker"}],"index":"i","nbHits":1,`),
		ask("", `{}`, 401, "Invalid credentials"),
		ask("search", `{"requests":[`+one+`]}`, 403, "Method not allowed with this API key"),
		ask(r, `[]`, 400, `want {\"requests\":[{`),
		ask(r, `{"requests":[]}`, 422, "requests must hold 1 to 20 requests, got 0"),
		ask(r, with(`"limit":3`), 422, "Unknown key: a request takes indexName"),
		ask(r, strings.Replace(with(`"threshold":0`), "related-products", "looking-similar", 1), 422, `requests[0].model must be related-products`),
		ask(r, with(`"threshold":101`), 422, "requests[0].threshold must be from 0 to 100"),
		ask(r, with(`"maxRecommendations":1001`), 422, "requests[0].maxRecommendations must be from 0 to 1000"),
		ask(r, `{"requests":[{"indexName":"i","model":"trending-facets"}]}`, 422, "requests[0].facetName must name the facet whose values trend"),
		ask(r, `{"requests":[{"indexName":"i","model":"trending-facets","facetName":"none"}]}`, 200, `{"results":[{"hits":[],"index":"i","nbHits":0,`),
		ask(r, with(`"facetName":"brand"`), 422, "requests[0].facetName and facetValue belong together, and to the model trending-items"),
		ask(r, with(`"queryParameters":{"userToken":"a b"}`), 422, "requests[0].queryParameters.userToken must be a user token"),
		ask(r, with(`"queryParameters":{"filters":"brand:"}`), 422, "requests[0].queryParameters.filters: where ends at byte"),
		ask(r, with(`"queryParameters":{"facetFilters":[]}`), 422, "requests[0].queryParameters.facetFilters is not supported"),
		ask(r, strings.Replace(with(`"threshold":0`), `"objectID":"tv",`, "", 1), 422, "requests[0].objectID must have 1 to 512 bytes, got 0"),
		ask(r, strings.Replace(with(`"threshold":0`), `"i"`, `""`, 1), 422, "requests[0].indexName must have 1 to"),
	)
}
