package rank_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/must"
	"github.com/affinityengine/affinity/shared/local/realdata"
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
