package docs_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/docs"
)

// get asks the function of some readers.
func get(readers docs.Readers, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	functions[readers].ServeHTTP(w, r)
	return w
}

var functions = map[docs.Readers]http.Handler{
	docs.ForClients:   docs.New(slog.New(slog.DiscardHandler), docs.ForClients),
	docs.ForOperators: docs.New(slog.New(slog.DiscardHandler), docs.ForOperators),
}

func TestServe(t *testing.T) {
	for _, test := range []struct {
		method, path string
		status       int
		begins       string
	}{
		{"GET", "/openapi.json", 200, `{"openapi": "3.1.0"`},
		{"HEAD", "/openapi.json", 200, ""},
		{"GET", "/docs", 200, "<!doctype html>"},
		{"GET", "/docs/", 200, "<!doctype html>"},
		{"HEAD", "/docs/strategy", 200, ""},
		{"GET", "/docs/strategy", 200, "<!doctype html>"},
		{"GET", "/docs/guides", 200, "<!doctype html>"},
		{"GET", "/docs/guides/quickstart", 200, "<!doctype html>"},
		{"GET", "/docs/guides/engines/solr", 200, "<!doctype html>"},
		{"GET", "/docs/search?q=send+events", 200, "<!doctype html>"},
		{"GET", "/docs/search", 200, "<!doctype html>"},
		{"GET", "/docs/search?q=" + strings.Repeat("x", 201), 400, `{"status":400,"message":"q has 201 letters, and may have 200"}`},
		{"OPTIONS", "/docs", 204, ""},
		{"POST", "/docs", 405, `{"status":405,"message":"Method Not Allowed"}`},
		{"POST", "/docs/search", 405, `{"status":405,"message":"Method Not Allowed"}`},
		{"GET", "/docs/nothing", 404, `{"status":404,"message":"No page \"nothing\": GET /docs lists those that exist"}`},
		{"GET", "/docs/operate/restore", 404, `{"status":404,"message":"No page \"operate/restore\"`},
		{"GET", "/docs/design/protocol", 404, `{"status":404,"message":"No page \"design/protocol\"`},
		{"GET", "/", 404, `{"status":404,"message":"Path not supported`},
	} {
		t.Run(test.method+" "+test.path[:min(len(test.path), 40)], func(t *testing.T) {
			w := get(docs.ForClients, test.method, test.path)
			if w.Code != test.status || !strings.HasPrefix(w.Body.String(), test.begins) || test.begins == "" && w.Body.Len() > 0 {
				t.Errorf("%d %.200s, want %d %s", w.Code, w.Body, test.status, test.begins)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Error("web pages of other origins cannot read the answer")
			}
		})
	}
	for _, path := range []string{"/docs/operate/restore", "/docs/design/protocol"} {
		if w := get(docs.ForOperators, "GET", path); w.Code != http.StatusOK {
			t.Errorf("operators get %d of %s", w.Code, path)
		}
	}
}

func TestUnchangedAnswersAreNotSentAgain(t *testing.T) {
	for _, path := range []string{"/openapi.json", "/docs", "/docs/events", "/docs/guides/ga4"} {
		first := get(docs.ForClients, "GET", path)
		etag := first.Header().Get("Etag")
		if etag == "" || first.Header().Get("Cache-Control") == "" {
			t.Fatalf("%s: headers %v", path, first.Header())
		}
		if again := get(docs.ForClients, "GET", path, "If-None-Match", etag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: %d with %d bytes, want 304 without a body", path, again.Code, again.Body.Len())
		}
	}
}

var (
	inline    = regexp.MustCompile(`(?s)<(style|script)>(.*?)</(?:style|script)>`)
	reference = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]+)"`)
	body      = regexp.MustCompile(`(?s)<pre.*?</pre>`)
)

// maxSent is how many packed bytes a page may have, which a phone shows at once.
const maxSent = 100_000

// TestPages follows every link from the first page on: each leads to a page and a heading, or to the repository. Pages
// load nothing, and their policy permits their own style and script alone.
func TestPages(t *testing.T) {
	for readers, want := range map[docs.Readers]int{docs.ForClients: 70, docs.ForOperators: 100} {
		pages, links := map[string]string{}, map[string][]string{}
		for queue := []string{"/docs", "/docs/search?q=events"}; len(queue) > 0; queue = queue[1:] {
			path := queue[0]
			if _, seen := pages[path]; seen {
				continue
			}
			w := get(readers, "GET", path)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d", path, w.Code)
			}
			page := w.Body.String()
			pages[path] = page
			checkPage(t, path, page, w.Header().Get("Content-Security-Policy"))
			for _, link := range reference.FindAllStringSubmatch(page, -1) {
				to := html.UnescapeString(link[1])
				links[path] = append(links[path], to)
				if file, _, _ := strings.Cut(to, "#"); file == "/docs" || strings.HasPrefix(file, "/docs/") {
					queue = append(queue, file)
				}
			}
		}
		if len(pages) < want {
			t.Errorf("%d pages for readers %d, want %d or more", len(pages), readers, want)
		}
		for path, all := range links {
			for _, link := range all {
				checkLink(t, pages, path, link)
			}
		}
	}
}

func checkPage(t *testing.T, path, page, policy string) {
	t.Helper()
	parts := inline.FindAllStringSubmatch(page, -1)
	if len(parts) != 2 {
		t.Fatalf("%s has %d styles and scripts, want one of each", path, len(parts))
	}
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part[2]))
		if !strings.Contains(policy, part[1]+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])) || !strings.HasPrefix(policy, "default-src 'none'") {
			t.Errorf("%s: the policy %s lacks its %s", path, policy, part[1])
		}
	}
	if strings.Contains(page, "url(") && !strings.Contains(page, "<code") || strings.Contains(page, "@import") || strings.Contains(page, "<img") || strings.Contains(page, " style=") {
		t.Errorf("%s loads something", path)
	}
	seen := map[string]bool{}
	for _, id := range identity.FindAllStringSubmatch(body.ReplaceAllString(page, ""), -1) {
		if seen[id[1]] {
			t.Errorf("%s has the id %s twice", path, id[1])
		}
		seen[id[1]] = true
	}
	if text := body.ReplaceAllString(page, ""); strings.Contains(text, "ZgotmplZ") || strings.Contains(text, "&lt;nil&gt;") || strings.Contains(text, "](") {
		t.Errorf("%s: something is not rendered", path)
	}
	w := get(docs.ForOperators, "GET", path, "Accept-Encoding", "gzip")
	if n := w.Body.Len(); n > maxSent {
		t.Errorf("%s has %d packed bytes, may have %d", path, n, maxSent)
	}
	if r, err := gzip.NewReader(w.Body); err != nil {
		t.Errorf("%s is not packed: %v", path, err)
	} else if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
}

func checkLink(t *testing.T, pages map[string]string, from, link string) {
	t.Helper()
	switch link {
	case "/openapi.json", "/health", "data:,", "/", "/docs/search":
		return
	}
	if strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://") {
		return // the repository, or a source: TestLinks looks for the file
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
