package rank_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/local/functiontest"
	"github.com/affinityengine/affinity/shared/rank/feed"
	"github.com/affinityengine/affinity/shared/store"
)

// BenchmarkFeed answers pages of 20 records of feeds with 100, 1,000 and 5,000
// candidates of five filters, for a user with 200 affinities: candidates and records
// are in memory, the user's row is read from the in-process Bigtable.
func BenchmarkFeed(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		s := department(b)
		if err := s.Backends.Config.SetLimits(b.Context(), functiontest.App, limit.Numbers{ReadsPerSecond: 1_000_000}); err != nil {
			b.Fatal(err)
		}
		now := time.Now()
		d, err := feed.Decode("news", []byte(`{"index":"posts","date":"publishedAt"}`))
		if err != nil {
			b.Fatal(err)
		}
		stored, err := d.Encode()
		if err != nil {
			b.Fatal(err)
		}
		f := config.Feed{Name: "news", Index: d.Index, Date: d.Date, Definition: string(stored)}
		if _, _, err := s.Backends.CachedConfig.SetFeed(b.Context(), functiontest.App, f, now); err != nil {
			b.Fatal(err)
		}
		random, posts := rand.New(rand.NewPCG(1, 2)), make([]store.Object, n)
		for i := range posts {
			at := now.Add(-time.Duration(i+1) * time.Minute).UnixMilli()
			posts[i] = store.Object{ID: fmt.Sprintf("post-%06d", i), Record: fmt.Appendf(nil, `{"objectID":"post-%06d","publishedAt":%d,"text":"%01000d"}`, i, at, 0)}
			for f := range storeFacets {
				posts[i].Filters.Filters = append(posts[i].Filters.Filters,
					event.Filter{Facet: fmt.Sprint("facet", f), Value: fmt.Sprint("value ", random.IntN(storeValues))})
			}
		}
		if err := s.Backends.Store.Catalog.PutObjects(b.Context(), functiontest.App, "posts", posts, "publishedAt"); err != nil {
			b.Fatal(err)
		}
		h := rank.New(s.Backends.ForRank())
		for _, path := range []string{"suggested?userToken=ann", "suggested", "latest"} {
			b.Run(fmt.Sprintf("candidates=%d/%s", n, path), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest(http.MethodGet, "/1/feeds/news/"+path, nil)
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
}
