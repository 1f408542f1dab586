package docs_test

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/docs"
	"github.com/affinityengine/affinity/shared/api"
)

func TestDocsNeedNoKey(t *testing.T) {
	for _, test := range []struct {
		method, path string
		status       int
		contentType  string
	}{
		{"GET", "/openapi.json", 200, "application/json"},
		{"HEAD", "/openapi.json", 200, "application/json"},
		{"GET", "/docs", 200, "text/html"},
		{"GET", "/docs/profiles", 200, "text/html"},
		{"POST", "/docs", 405, "application/json"},
		{"GET", "/unknown", 404, "application/json"},
	} {
		w := httptest.NewRecorder()
		functions[docs.ForClients].ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		if got := w.Header().Get("Content-Type"); w.Code != test.status || !strings.HasPrefix(got, test.contentType) {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, w.Code, got, test.status, test.contentType)
		}
		if test.status == 200 && (w.Header().Get("Etag") == "" || w.Header().Get("Content-Security-Policy") == "") {
			t.Errorf("%s %s: headers %v, want Etag and Content-Security-Policy", test.method, test.path, w.Header())
		}
	}
}

// The load balancer says which commit is deployed, because no function knows.
func TestHealthNamesTheRelease(t *testing.T) {
	for _, release := range []string{"", "0a1b2c"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/health", nil)
		r.Header.Set(api.ReleaseHeader, release)
		docs.New(slog.New(slog.DiscardHandler), docs.ForClients).ServeHTTP(w, r)
		var got api.Health
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if want := (api.Health{Status: 200, Message: "OK", Version: api.Version, Release: release}); got != want {
			t.Errorf("the answer is %+v, want %+v", got, want)
		}
	}
}

// The function links no client of a cloud. The packages of this module that it
// links are listed in shared/layers_test.go.
func TestDocsLinkNoBackend(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "cloud.google.com/") || strings.HasPrefix(pkg, "google.golang.org/grpc") || strings.Contains(pkg, "yaml") {
			t.Errorf("functions/docs links %s", pkg)
		}
	}
}
