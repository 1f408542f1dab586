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
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/local/realdata"
	"github.com/affinityengine/affinity/shared/local/stack"
	"github.com/affinityengine/affinity/shared/score/strategy"
	"github.com/affinityengine/affinity/shared/store"
)

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
	if status, answer := functiontest.Call(imports.New(synthetic.Backends.ForImports()), "admin", "POST", "/1/events/import", strings.Join(lines, "\n")); status != http.StatusOK {
		b.Fatalf("%d %s", status, answer)
	}
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
	if err != nil {
		b.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/1/rank", bytes.NewReader(body))
	request.Header.Set("X-Algolia-Application-Id", functiontest.App)
	request.Header.Set("X-Algolia-API-Key", "recommendation")
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
	if _, _, err := s.Backends.Config.SetStrategy(b.Context(), functiontest.App, realdata.Strategy(b, set)); err != nil {
		b.Fatal(err)
	}
	var objects []store.Object
	for _, o := range realdata.Objects(b, set) {
		object := store.Object{ID: o.ID, Record: []byte("{}")}
		object.Filters.Filters = o.Filters
		objects, ids = append(objects, object), append(ids, o.ID)
	}
	if err := s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, realdata.Index, objects); err != nil {
		b.Fatal(err)
	}
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
	if status, answer := functiontest.Call(imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", lines.String()); status != http.StatusOK {
		b.Fatalf("%d %s", status, answer)
	}
	if status, answer := functiontest.Call(admin.New(s.Backends.ForAdmin()), "recommendation", "POST", "/1/crowd", ""); status >= 300 {
		b.Fatalf("%d %s", status, answer)
	}
	if err := s.Idle(b.Context()); err != nil {
		b.Fatal(err)
	}
	for user := range known {
		users = append(users, user)
	}
	slices.Sort(users)
	return s, users, ids
}
