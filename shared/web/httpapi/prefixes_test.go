package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// answering answers with a text.
func answering(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

func TestPrefixesMatchWholeSegments(t *testing.T) {
	some := httpapi.Prefixes{
		{Prefix: "/1/events/import", Handler: answering("imports")},
		{Prefix: "/1/events", Handler: answering("ingest")},
		{Prefix: "/v1", Handler: answering("ingest")},
	}
	for path, want := range map[string]string{
		"/1/events":            "ingest",
		"/1/events/":           "ingest",
		"/1/events/refused":    "ingest",
		"/1/events/import":     "imports",
		"/1/events/import/x":   "imports",
		"/1/events/importer":   "ingest",
		"/1/events?a=b":        "ingest",
		"/v1/track":            "ingest",
		"/1/eventss":           "",
		"/v10":                 "",
		"/1":                   "",
		"/":                    "",
		"/1/events%2Fimport":   "",
		"/x/1/events":          "",
		"/1/events/a%2Fb":      "ingest",
		"/1/%65vents":          "",
		"/console/../1/events": "",
	} {
		w := httptest.NewRecorder()
		some.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if want == "" {
			if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), httpapi.UnknownPath) {
				t.Errorf("%s: %d %s, want 404", path, w.Code, w.Body)
			}
		} else if w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	all := append(some, httpapi.Prefix{Prefix: "", Handler: answering("rest")})
	for path, want := range map[string]string{"/": "rest", "/1/eventss": "rest", "/1/events": "ingest"} {
		w := httptest.NewRecorder()
		if all.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Body.String() != want {
			t.Errorf("%s: %s, want %s", path, w.Body, want)
		}
	}
}

// Pages of other origins read no answer of a Router for people with a cookie, and cannot ask
// whether they may.
func TestRouterOfOwnOrigin(t *testing.T) {
	for _, own := range []bool{true, false} {
		rt := httpapi.NewRouter(quiet)
		rt.OwnOrigin = own
		rt.Handle("GET /page", func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte("page"))
			return err
		})
		rt.Handle("GET /crash", func(http.ResponseWriter, *http.Request) error { panic("a bug") })
		rt.Handle("GET /refused", func(http.ResponseWriter, *http.Request) error { return httpapi.Errorf(403, "no") })
		for _, c := range []struct {
			method, path string
			status       int
		}{
			{"GET", "/page", 200}, {"HEAD", "/page", 200}, {"GET", "/crash", 500}, {"GET", "/refused", 403}, {"GET", "/other", 404}, {"POST", "/page", 405}, {"OPTIONS", "/page", 405}, {"OPTIONS", "/other", 404},
		} {
			want := c.status
			if !own && c.method == "OPTIONS" {
				want = http.StatusNoContent
			}
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Header.Set("Origin", "https://other.example")
			r.Header.Set("Access-Control-Request-Method", "POST")
			w := httptest.NewRecorder()
			rt.ServeHTTP(w, r)
			cors := 0
			for name := range w.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					cors++
				}
			}
			if w.Code != want || own && cors > 0 || !own && cors == 0 {
				t.Errorf("own origin %v, %s %s: %d with %d headers of CORS, want %d", own, c.method, c.path, w.Code, cors, want)
			}
			if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("own origin %v, %s %s: %v", own, c.method, c.path, w.Header())
			}
		}
	}
}
