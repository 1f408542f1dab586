package auth_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/local/seal"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// BenchmarkChecks compares a request that is only read with one that also
// authenticates, by a plain key and by a secured one, and takes its bytes from the
// process's gate, and with one that counts against the app's limit besides. p50-ns is
// the median of a request.
func BenchmarkChecks(b *testing.B) {
	store := config.NewMemory()
	if err := store.CreateApp(b.Context(), config.App{ID: "shop", Limits: limit.Numbers{ReadsPerSecond: limit.Max}}); err != nil {
		b.Fatal(err)
	}
	cipher := seal.New()
	texts := []string{"a", "b", "c", "d", "search"} // as many parents as an app may have
	for _, text := range texts {
		key := config.Key{Hash: auth.Hash(text), ACL: []string{auth.Search}, Indexes: []string{"a", "b*"}, AddressRate: 1_000_000}
		if err := config.AddParent(b.Context(), store, cipher, "shop", key, text); err != nil {
			b.Fatal(err)
		}
	}
	secured := secure("search", "userToken=ann&validUntil=99999999999&restrictIndices=a%2Cb%2A&restrictSources=0.0.0.0%2F0")
	keys := auth.New(config.NewCached(store, config.TTL).WithCipher(cipher), auth.Environment{}, nil)
	const most = 2_000_000
	body := strings.Repeat("a", 1_000)
	checked := func(w http.ResponseWriter, r *http.Request) error {
		if _, err := keys.UserGrant(r, auth.Search); err != nil {
			return err
		}
		_, err := httpapi.ReadBody(w, r, most)
		return err
	}
	for _, test := range []struct {
		name, key string
		handle    httpapi.Handler
	}{
		{"read", "", func(_ http.ResponseWriter, r *http.Request) error {
			_, err := io.ReadAll(io.LimitReader(r.Body, most))
			return err
		}},
		{"plain", "search", checked},
		{"secured", secured, checked},
		{"limited", "search", checked},
		{"secured and limited", secured, checked},
	} {
		b.Run(test.name, func(b *testing.B) {
			handler := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = test.handle(w, r) }))
			if test.name != "read" {
				rt := httpapi.NewRouter(slog.New(slog.DiscardHandler))
				if strings.HasSuffix(test.name, "limited") {
					rt.Limits = limit.New(time.Now, limit.Numbers{}, nil, nil)
				}
				rt.Handle("POST /", test.handle)
				handler = rt
			}
			took := make([]time.Duration, 0, 1<<20)
			for b.Loop() {
				r := httptest.NewRequest("POST", "/", strings.NewReader(body))
				r.Header.Set("X-Algolia-Application-Id", "shop")
				r.Header.Set("X-Algolia-API-Key", test.key)
				r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", len(took)>>8&255, len(took)&255) // no address meets its limit
				w := httptest.NewRecorder()
				began := time.Now()
				handler.ServeHTTP(w, r)
				took = append(took, time.Since(began))
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
		})
	}
}
