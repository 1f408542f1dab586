package rank_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/rank/boost"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

const (
	storeObjects    = 5000
	storeCandidates = 1000
	storeFacets     = 5
	storeValues     = 40 // of a facet
)

// department starts a shop with 5,000 objects and a user with 200 affinities.
func department(b *testing.B) *stack.Stack {
	b.Helper()
	s := functiontest.Start(b)
	plain := strategy.Strategy{
		EventsScoring: []strategy.EventScore{{EventName: "Seen", EventType: event.View, Score: 3}}, PersonalizationImpact: 50,
	}
	random, objects, lines := rand.New(rand.NewPCG(1, 2)), make([]store.Object, storeObjects), []string(nil)
	for f := range storeFacets {
		plain.FacetsScoring = append(plain.FacetsScoring, strategy.FacetScore{FacetName: fmt.Sprint("facet", f), Score: 10})
		for v := range storeValues {
			lines = append(lines, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","timestamp":%d,"filters":["facet%d:value %d"]}`,
				time.Now().Add(-time.Hour).UnixMilli(), f, v))
		}
	}
	functiontest.SetStrategy(b, s, plain)
	for i := range objects {
		objects[i] = store.Object{ID: objectID(i), Record: []byte("{}")}
		for f := range storeFacets {
			objects[i].Filters.Filters = append(objects[i].Filters.Filters,
				event.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", random.IntN(storeValues))})
		}
	}
	must.Succeed(b, s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "i", objects))
	functiontest.Do(b, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", strings.Join(lines, "\n"))
	return s
}

func objectID(i int) string { return fmt.Sprintf("product-%06d", i) }

// bodies returns requests that name different candidates.
func bodies(b *testing.B, edit func(*api.RankRequest)) [][]byte {
	b.Helper()
	var all [][]byte
	for i := range 20 {
		r := api.RankRequest{UserToken: "ann", Index: "i"}
		for _, n := range rand.New(rand.NewPCG(3, uint64(i))).Perm(storeObjects)[:storeCandidates] {
			r.ObjectIDs = append(r.ObjectIDs, objectID(n))
		}
		edit(&r)
		body, err := json.Marshal(r)
		must.Succeed(b, err)
		all = append(all, body)
	}
	return all
}

// BenchmarkHandler answers requests with 1,000 candidates for a user with 200
// affinities: the candidates are in memory, the user's row is read from the
// in-process Bigtable. Its allocations are counted too.
func BenchmarkHandler(b *testing.B) {
	h := rank.New(department(b).Backends.ForRank())
	for _, kind := range []struct {
		name string
		edit func(*api.RankRequest)
	}{
		{"objectIDs", func(*api.RankRequest) {}},
		{"limit", func(r *api.RankRequest) { r.Limit = 20 }},
		{"items", withRelevancies},
		{"explain", func(r *api.RankRequest) { withRelevancies(r); r.Limit, r.Explain = 20, true }},
	} {
		all := bodies(b, kind.edit)
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := httptest.NewRequest(http.MethodPost, "/1/rank", bytes.NewReader(all[i%len(all)]))
				r.Header.Set("X-Algolia-Application-Id", functiontest.App)
				r.Header.Set("X-Algolia-API-Key", "recommendation")
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkExperiment answers the same requests with an experiment that runs and without one, in turn: 100 candidates for
// one of 2,000 users, each of whom the experiment meets once. It says how many times as long the median and the sum of
// those with an experiment took.
//
//	go test ./functions/rank -run '^$' -bench Experiment -benchtime 10000x
func BenchmarkExperiment(b *testing.B) {
	var handlers [2]http.Handler
	for i := range handlers {
		s := department(b)
		handlers[i] = rank.New(s.Backends.ForRank())
		if i == 0 {
			continue
		}
		c := s.Backends.CachedConfig
		app, err := c.App(b.Context(), functiontest.App)
		must.Succeed(b, err)
		other := app.Strategy
		other.PersonalizationImpact = 90
		second, _, err := c.SetStrategy(b.Context(), functiontest.App, other)
		must.Succeed(b, err)
		between(b, c, s.Backends.Now(), [2]int64{app.StrategyVersion, second.StrategyVersion})
	}
	all := bodies(b, func(r *api.RankRequest) { r.ObjectIDs, r.UserToken = r.ObjectIDs[:100], "user-0000" })
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		body := bytes.Replace(all[n%len(all)], []byte("user-0000"), fmt.Appendf(nil, "user-%04d", n*7919%2000), 1)
		for i := range handlers {
			i ^= n % 2
			r := functiontest.NewRequest("recommendation", "POST", "/1/rank", string(body))
			w, began := httptest.NewRecorder(), time.Now()
			if handlers[i].ServeHTTP(w, r); w.Code != http.StatusOK {
				b.Fatalf("%d %s", w.Code, w.Body)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	var median, sum [2]float64
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2])
		for _, d := range all {
			sum[i] += float64(d)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median[0]/1e3, "us-without")
	b.ReportMetric(median[1]/1e3, "us-with")
	b.ReportMetric(median[1]/median[0], "x-median")
	b.ReportMetric(sum[1]/sum[0], "x-sum")
}

// BenchmarkBoosts answers boosts of 100 affinities for a user with 200, whose row is
// read from the in-process Bigtable, and renders them alone.
func BenchmarkBoosts(b *testing.B) {
	s := department(b)
	h := rank.New(s.Backends.ForRank())
	for _, engine := range boost.Engines() {
		r := functiontest.NewRequest("recommendation", "GET", "/1/boosts/ann?limit=100&engine="+engine, "")
		b.Run("handler/"+engine, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
		request := boost.Request{Engine: engine, Impact: 50, Limit: 100, Spoken: func(string, string) bool { return true }}
		for f := range storeFacets {
			for v := range storeValues {
				request.Affinities = append(request.Affinities, boost.Affinity{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", v), Score: float64(1 + v*7%11)})
			}
		}
		b.Run("render/"+engine, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := boost.Render(request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func withRelevancies(r *api.RankRequest) {
	for i, id := range r.ObjectIDs {
		r.Items = append(r.Items, api.RankItem{ID: id, Fields: []api.RankField{{Name: api.FieldRelevancy, Value: 20 - float64(i)/100}}})
	}
	r.ObjectIDs = nil
}

// BenchmarkFeed answers pages of 20 records of feeds with 100, 1,000 and 5,000
// candidates of five filters, for a user with 200 affinities: candidates and records
// are in memory, the user's row is read from the in-process Bigtable.
func BenchmarkFeed(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		s := department(b)
		must.Succeed(b, s.Backends.Config.SetLimits(b.Context(), functiontest.App, limit.Numbers{ReadsPerSecond: 1_000_000}))
		now := time.Now()
		setFeed(b, s, "news", `{"index":"posts","date":"publishedAt"}`)
		random, posts := rand.New(rand.NewPCG(1, 2)), make([]store.Object, n)
		for i := range posts {
			at := now.Add(-time.Duration(i+1) * time.Minute).UnixMilli()
			posts[i] = store.Object{ID: fmt.Sprintf("post-%06d", i), Record: fmt.Appendf(nil, `{"objectID":"post-%06d","publishedAt":%d,"text":"%01000d"}`, i, at, 0)}
			for f := range storeFacets {
				posts[i].Filters.Filters = append(posts[i].Filters.Filters,
					event.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", random.IntN(storeValues))})
			}
		}
		must.Succeed(b, s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "posts", posts, "publishedAt"))
		h := rank.New(s.Backends.ForRank())
		for _, path := range []string{"suggested?userToken=ann", "suggested", "latest"} {
			b.Run(fmt.Sprintf("candidates=%d/%s", n, path), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := functiontest.NewRequest("recommendation", "GET", "/1/feeds/news/"+path, "")
					w := httptest.NewRecorder()
					if h.ServeHTTP(w, r); w.Code != http.StatusOK {
						b.Fatalf("%d %s", w.Code, w.Body)
					}
				}
			})
		}
	}
}

// BenchmarkPosts answers pages of the format wordpress from 5,000 candidates, as BenchmarkFeed does: the
// first and the last page, and a part of each post.
func BenchmarkPosts(b *testing.B) {
	const n = 5000
	s := department(b)
	must.Succeed(b, s.Backends.Config.SetLimits(b.Context(), functiontest.App, limit.Numbers{ReadsPerSecond: 1_000_000}))
	setFeed(b, s, "blog", `{"index":"posts","date":"at","format":"wordpress"}`)
	setFeed(b, s, "unseen", `{"index":"posts","date":"at","format":"wordpress","seen":"exclude"}`)
	posts := make([]store.Object, n)
	for i := range posts {
		at := time.Now().Add(-time.Duration(i+1) * time.Minute).UnixMilli()
		record, err := json.Marshal(map[string]any{"objectID": objectID(i), "at": at, "wordpress": embeddingPost(i)})
		must.Succeed(b, err)
		posts[i] = store.Object{ID: objectID(i), Record: record}
		for f := range storeFacets {
			posts[i].Filters.Filters = append(posts[i].Filters.Filters,
				event.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", (i*7+f)%storeValues)})
		}
	}
	must.Succeed(b, s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "posts", posts, "at"))
	h := rank.New(s.Backends.ForRank())
	for _, path := range []string{"blog/latest?", "blog/latest?page=250&", "blog/latest?_fields=id,title.rendered&", "blog/suggested?userToken=ann&",
		"blog/suggested?page=250&userToken=ann&", "unseen/suggested?userToken=ann&"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, functiontest.NewRequest("recommendation", "GET", "/1/feeds/"+path+"per_page=20", "")); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkDiversity sends each request once without and once with diversity, and
// reports by how many percent the median of the second is higher.
func BenchmarkDiversity(b *testing.B) {
	synthetic := department(b)
	ids := make([]string, storeObjects)
	for i := range ids {
		ids[i] = objectID(i)
	}
	// The most work: ann likes all values alike, so all scores are equal.
	b.Run("equal", func(b *testing.B) { compareDiversity(b, synthetic, "i", []string{"ann"}, ids, "facet1") })
	var lines []string
	for f := range storeFacets {
		for v := range storeValues {
			for n := range v / 2 {
				lines = append(lines, fmt.Sprintf(`{"eventType":"view","eventName":"Seen","index":"i","userToken":"ann","timestamp":%d,"filters":["facet%d:value %d"]}`,
					time.Now().Add(-time.Hour).UnixMilli()+int64(n), f, v*(f+3)%storeValues))
			}
		}
	}
	functiontest.Do(b, imports.New(synthetic.Backends.ForImports()), "admin", "POST", "/1/events/import", strings.Join(lines, "\n"))
	b.Run("synthetic", func(b *testing.B) { compareDiversity(b, synthetic, "i", []string{"ann"}, ids, "facet1") })
	for set, facet := range map[string]string{"clickstream": "colour", "onlineretail": "price_range"} {
		s, users, ids := realShop(b, set)
		b.Run(set, func(b *testing.B) { compareDiversity(b, s, realdata.Index, users, ids, facet) })
	}
}

func compareDiversity(b *testing.B, s *stack.Stack, index string, users, ids []string, facet string) {
	h := rank.New(s.Backends.ForRank())
	for _, candidates := range []int{100, 1000, 5000} {
		for _, limit := range []int{20, 100} {
			for _, d := range []strategy.Diversity{{}, {Lambda: 0.5}, {Facet: facet, Lambda: 0.7, MaxPerValue: 3}} {
				if candidates == 5000 && len(ids) < 1000 {
					continue
				}
				b.Run(fmt.Sprintf("candidates=%d/limit=%d/lambda=%g,facet=%s,max=%d", min(candidates, len(ids)), limit, d.LambdaOrDefault(), d.Facet, d.MaxPerValue), func(b *testing.B) {
					random := rand.New(rand.NewPCG(1, 2))
					var plain, diverse []time.Duration
					for b.Loop() {
						r := api.RankRequest{UserToken: users[random.IntN(len(users))], Index: index, Limit: limit}
						for _, n := range random.Perm(len(ids))[:min(candidates, len(ids))] {
							r.ObjectIDs = append(r.ObjectIDs, ids[n])
						}
						b.StopTimer()
						ask(b, h, r) // the candidates are in memory from now on
						plain = append(plain, ask(b, h, r))
						b.StartTimer()
						r.Diversity = &d
						diverse = append(diverse, ask(b, h, r))
					}
					slices.Sort(plain)
					slices.Sort(diverse)
					without, with := plain[len(plain)/2], diverse[len(diverse)/2]
					b.ReportMetric(float64(without.Microseconds()), "us-without")
					b.ReportMetric(float64(with.Microseconds()), "us-with")
					b.ReportMetric(100*(float64(with)/float64(without)-1), "%cost")
				})
			}
		}
	}
}

// ask sends a request and returns how long it took.
func ask(b *testing.B, h http.Handler, r api.RankRequest) time.Duration {
	b.Helper()
	body, err := json.Marshal(r)
	must.Succeed(b, err)
	request := functiontest.NewRequest("recommendation", "POST", "/1/rank", string(body))
	w := httptest.NewRecorder()
	began := time.Now()
	if h.ServeHTTP(w, request); w.Code != http.StatusOK {
		b.Fatalf("%d %s", w.Code, w.Body)
	}
	return time.Since(began)
}

// realShop starts a shop with the objects of a data set and the newest events of
// some users, and builds its statistics. It returns the users and the objectIDs.
func realShop(b *testing.B, set string) (s *stack.Stack, users, ids []string) {
	b.Helper()
	s = functiontest.Start(b)
	functiontest.SetStrategy(b, s, realdata.Strategy(b, set))
	var objects []store.Object
	for _, o := range realdata.Objects(b, set) {
		object := store.Object{ID: o.ID, Record: []byte("{}")}
		object.Filters.Filters = o.Filters
		objects, ids = append(objects, object), append(ids, o.ID)
	}
	must.Succeed(b, s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, realdata.Index, objects))
	last := int64(0)
	for e := range realdata.Events(b, set) {
		last = max(last, e.Time)
	}
	shift, lines, known := time.Now().UnixMilli()-last-1000, bytes.Buffer{}, map[string]bool{}
	for e := range realdata.Events(b, set) {
		if last-e.Time > 20*24*3_600_000 || !known[e.UserToken] && len(known) == 500 {
			continue
		}
		known[e.UserToken] = true
		line, _ := json.Marshal(map[string]any{"eventType": e.Type, "eventName": e.Name, "index": e.Index, "userToken": e.UserToken,
			"timestamp": e.Time + shift, "objectIDs": e.ObjectIDs})
		lines.Write(append(line, '\n'))
	}
	functiontest.Do(b, imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", lines.String())
	if status, answer := functiontest.Call(admin.New(s.Backends.ForAdmin()), "recommendation", "POST", "/1/crowd", ""); status >= 300 {
		b.Fatalf("%d %s", status, answer)
	}
	must.Succeed(b, s.Idle(b.Context()))
	for user := range known {
		users = append(users, user)
	}
	slices.Sort(users)
	return s, users, ids
}
