package openapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/shared/web/httpapi"
	"github.com/affinityengine/affinity/shared/web/openapi"
)

func get(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	rt := httpapi.NewRouter(slog.New(slog.DiscardHandler))
	rt.Handle("/", openapi.Serve)
	rt.ServeHTTP(w, r)
	return w
}

func TestServe(t *testing.T) {
	for _, test := range []struct {
		method, path string
		status       int
		begins       string
	}{
		{"GET", "/openapi.json", 200, "{\n \"openapi\": \"3.1.0\""},
		{"HEAD", "/openapi.json", 200, ""},
		{"GET", "/docs", 200, "<!doctype html>"},
		{"GET", "/docs/", 200, "<!doctype html>"},
		{"HEAD", "/docs/strategy", 200, ""},
		{"GET", "/docs/strategy", 200, "<!doctype html>"},
		{"OPTIONS", "/docs", 204, ""},
		{"POST", "/docs", 405, `{"status":405,"message":"Method Not Allowed"}`},
		{"GET", "/docs/nothing", 404, `{"status":404,"message":"No page \"nothing\": GET /docs lists those that exist"}`},
		{"GET", "/docs/strategy/more", 404, `{"status":404,"message":"Path not supported`},
		{"GET", "/", 404, `{"status":404,"message":"Path not supported`},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			w := get(test.method, test.path)
			if w.Code != test.status || !strings.HasPrefix(w.Body.String(), test.begins) || test.begins == "" && w.Body.Len() > 0 {
				t.Errorf("%d %.200s, want %d %s", w.Code, w.Body, test.status, test.begins)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Error("web pages of other origins cannot read the answer")
			}
		})
	}
}

func TestUnchangedAnswersAreNotSentAgain(t *testing.T) {
	for _, path := range []string{"/openapi.json", "/docs", "/docs/events"} {
		first := get("GET", path)
		etag := first.Header().Get("Etag")
		if etag == "" || first.Header().Get("Cache-Control") == "" {
			t.Fatalf("%s: headers %v", path, first.Header())
		}
		if again := get("GET", path, "If-None-Match", etag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: %d with %d bytes, want 304 without a body", path, again.Code, again.Body.Len())
		}
	}
}

var (
	style     = regexp.MustCompile(`(?s)<style>(.*)</style>`)
	reference = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]+)"`)
)

// TestPages checks that pages load nothing, that their policy permits their own
// style, and that each of their links leads somewhere.
func TestPages(t *testing.T) {
	var doc struct{ Tags []struct{ Name string } }
	if err := json.Unmarshal(openapi.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"/docs": get("GET", "/docs").Body.String()}
	for _, tag := range doc.Tags {
		w := get("GET", "/docs/"+tag.Name)
		if w.Code != http.StatusOK {
			t.Fatalf("/docs/%s: %d", tag.Name, w.Code)
		}
		pages["/docs/"+tag.Name] = w.Body.String()
	}
	for path, page := range pages {
		css := style.FindStringSubmatch(page)
		if css == nil {
			t.Fatalf("%s has no style", path)
		}
		sum := sha256.Sum256([]byte(css[1]))
		if policy := get("GET", path).Header().Get("Content-Security-Policy"); !strings.Contains(policy, base64.StdEncoding.EncodeToString(sum[:])) ||
			!strings.HasPrefix(policy, "default-src 'none'") {
			t.Errorf("%s: policy %s", path, policy)
		}
		if strings.Contains(css[1], "url(") || strings.Contains(css[1], "@import") || strings.Contains(page, "<script") {
			t.Errorf("%s loads something", path)
		}
		seen := map[string]bool{}
		for _, id := range identity.FindAllStringSubmatch(page, -1) {
			if seen[id[1]] {
				t.Errorf("%s has the id %s twice", path, id[1])
			}
			seen[id[1]] = true
		}
		for _, link := range reference.FindAllStringSubmatch(page, -1) {
			checkLink(t, pages, path, link[1])
		}
		if strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "&lt;nil&gt;") || strings.Contains(page, "[](") {
			t.Errorf("%s: something is not rendered", path)
		}
	}
}

func checkLink(t *testing.T, pages map[string]string, from, link string) {
	t.Helper()
	if link == "/openapi.json" || link == "/health" || link == "data:," {
		return
	}
	path, id, _ := strings.Cut(link, "#")
	if path == "" {
		path = from
	}
	page, ok := pages[path]
	if !ok || id != "" && !strings.Contains(page, ` id="`+id+`"`) {
		t.Errorf("%s links to %s, which does not exist", from, link)
	}
}
