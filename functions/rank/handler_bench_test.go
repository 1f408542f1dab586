package rank_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
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
	if _, _, err := s.Backends.Config.SetStrategy(b.Context(), functiontest.App, plain); err != nil {
		b.Fatal(err)
	}
	for i := range objects {
		objects[i] = store.Object{ID: objectID(i), Record: []byte("{}")}
		for f := range storeFacets {
			objects[i].Filters.Filters = append(objects[i].Filters.Filters,
				event.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", random.IntN(storeValues))})
		}
	}
	if err := s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "i", objects); err != nil {
		b.Fatal(err)
	}
	status, answer := functiontest.Call(imports.New(s.Backends.ForImports()), "admin", "POST", "/1/events/import", strings.Join(lines, "\n"))
	if status != http.StatusOK {
		b.Fatalf("%d %s", status, answer)
	}
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
		if err != nil {
			b.Fatal(err)
		}
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

// BenchmarkBoosts answers boosts of 100 affinities for a user with 200, whose row is
// read from the in-process Bigtable, and renders them alone.
func BenchmarkBoosts(b *testing.B) {
	s := department(b)
	h := rank.New(s.Backends.ForRank())
	for _, engine := range boost.Engines() {
		r := httptest.NewRequest(http.MethodGet, "/1/boosts/ann?limit=100&engine="+engine, nil)
		r.Header.Set("X-Algolia-Application-Id", functiontest.App)
		r.Header.Set("X-Algolia-API-Key", "recommendation")
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
