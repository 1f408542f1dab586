package rank_test

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkRecommend recommends 20 objects of real shops to users with events, for guests, and
// for three given objects. Objects and statistics are in memory, the user's row is read from
// the in-process Bigtable. It reports the median and the 99th percentile.
func BenchmarkRecommend(b *testing.B) {
	for _, set := range []string{"clickstream", "onlineretail"} {
		s, users, ids := realShop(b, set)
		must.Succeed(b, s.Backends.Config.SetLimits(b.Context(), functiontest.App, limit.Numbers{ReadsPerSecond: 1_000_000}))
		h := rank.New(s.Backends.ForRank())
		for _, model := range []string{api.RecommendRelated, api.RecommendNext, api.RecommendForYou, "guest"} {
			b.Run(set+"/"+model, func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 2))
				once := func() time.Duration {
					q := api.RecommendRequest{Model: model, Index: realdata.Index, UserToken: users[random.IntN(len(users))]}
					switch model {
					case "guest":
						q.Model, q.UserToken = api.RecommendForYou, ""
					case api.RecommendRelated, api.RecommendNext:
						for range 3 {
							q.ObjectIDs = append(q.ObjectIDs, ids[random.IntN(len(ids))])
						}
					}
					return recommendOnce(b, h, q)
				}
				for range 300 { // what is asked for is in memory from now on
					once()
				}
				var took []time.Duration
				for b.Loop() {
					took = append(took, once())
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			})
		}
	}
}

// recommendOnce sends a request and returns how long it took.
func recommendOnce(b *testing.B, h http.Handler, q api.RecommendRequest) time.Duration {
	b.Helper()
	body, err := json.Marshal(q)
	must.Succeed(b, err)
	request := functiontest.NewRequest("recommendation", "POST", "/1/recommend", string(body))
	w := httptest.NewRecorder()
	began := time.Now()
	if h.ServeHTTP(w, request); w.Code != http.StatusOK {
		b.Fatalf("%d %s", w.Code, w.Body)
	}
	return time.Since(began)
}

// BenchmarkRecommendOfMany recommends objects of an index of 500,000, of which a thousand have all links that an
// object can have. It reports the memory of the statistics, too.
func BenchmarkRecommendOfMany(b *testing.B) {
	const objects, linked = 500_000, 1000
	s := functiontest.Start(b)
	must.Succeed(b, s.Backends.Config.SetLimits(b.Context(), functiontest.App, limit.Numbers{ReadsPerSecond: 1_000_000}))
	w := s.Backends.Store.Crowd.NewCrowdWriter(b.Context(), store.CrowdRef{App: functiontest.App, Index: "i", Generation: "g1"})
	counts, held := make([]crowd.Counted, objects), []store.Object(nil)
	for i := range counts {
		counts[i] = crowd.Counted{ObjectID: objectID(i), Count: float64(i * 7919 % objects), Recent: float64(i % 100)}
		if counts[i].Count >= objects-5000 || i < linked*(crowd.Best+1) {
			held = append(held, store.Object{ID: objectID(i), Record: []byte("{}")})
		}
	}
	for i := range linked {
		o := crowd.Object{Events: 1000}
		for kind := range o.Links {
			for n := range crowd.Best {
				o.Links[kind] = append(o.Links[kind], crowd.Pair{ObjectID: objectID(linked + i*crowd.Best + n), Count: int64(100 - n)})
			}
		}
		must.Succeed(b, w.Object(objectID(i), o.AppendBinary(nil)))
	}
	must.Succeed(b, w.Counts(0, slices.Collect(crowd.PackCounts(counts))))
	must.Succeed(b, w.Flush())
	must.Succeed(b, s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "i", held))
	_, err := crowd.SwapManifest(b.Context(), s.Backends.Store.Crowd, functiontest.App, "i", nil, crowd.Manifest{Current: crowd.Generation{
		Name: "g1", AsOf: s.Backends.Now().UnixMilli(), HalfLife: 7 * 86_400_000, Objects: objects, Share: 1}})
	must.Succeed(b, err)
	counts, held = nil, nil
	h, random := rank.New(s.Backends.ForRank()), rand.New(rand.NewPCG(1, 2))
	memory := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before := memory()
	recommendOnce(b, h, api.RecommendRequest{Model: api.RecommendTrending, Index: "i"})
	grown := memory() - before
	for _, model := range []string{api.RecommendRelated, api.RecommendTogether, api.RecommendTrending, api.RecommendForYou} {
		b.Run(model, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				q := api.RecommendRequest{Model: model, Index: "i"}
				if model == api.RecommendRelated || model == api.RecommendTogether {
					q.ObjectIDs = []string{objectID(random.IntN(linked))}
				}
				took = append(took, recommendOnce(b, h, q))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(grown, "MiB")
		})
	}
}

// BenchmarkRecommendAtRate asks for 200 recommendations a second, whether answers come or not, over HTTP, and measures each
// from the moment that it was due: go test ./functions/rank -run - -bench AtRate -benchtime 4000x
func BenchmarkRecommendAtRate(b *testing.B) {
	const rate = 200
	for _, set := range []string{"clickstream", "onlineretail"} {
		b.Run(set, func(b *testing.B) {
			s, users, ids := realShop(b, set)
			must.Succeed(b, s.Backends.Config.SetLimits(b.Context(), functiontest.App, limit.Numbers{ReadsPerSecond: 1_000_000}))
			engine := httptest.NewServer(rank.New(s.Backends.ForRank()))
			defer engine.Close()
			engine.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 1000
			ask := func(i int) {
				q := api.RecommendRequest{Model: api.RecommendForYou, Index: realdata.Index, UserToken: users[i*7919%len(users)]}
				if i%2 == 0 {
					q.Model, q.ObjectIDs = api.RecommendRelated, []string{ids[i*104729%len(ids)]}
				}
				body, err := json.Marshal(q)
				must.Succeed(b, err)
				r := functiontest.NewRequest("recommendation", "POST", engine.URL+"/1/recommend", string(body))
				r.RequestURI = ""
				answer, err := engine.Client().Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				defer answer.Body.Close()
				if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
					b.Errorf("%d, %v", answer.StatusCode, err)
				}
			}
			for i := range 2000 {
				ask(i)
			}
			took, wait := make([]time.Duration, b.N), sync.WaitGroup{}
			began := time.Now()
			for i := range took {
				due := began.Add(time.Duration(i) * time.Second / rate)
				time.Sleep(time.Until(due))
				wait.Go(func() {
					ask(i)
					took[i] = time.Since(due)
				})
			}
			wait.Wait()
			slices.Sort(took)
			for name, q := range map[string]int{"p50-us": 50, "p95-us": 95, "p99-us": 99} {
				b.ReportMetric(float64(took[len(took)*q/100].Microseconds()), name)
			}
		})
	}
}
