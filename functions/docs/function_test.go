package docs_test

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/affinityengine/affinity/functions/docs"
)

func TestDocsNeedNoKey(t *testing.T) {
	for path, kind := range map[string]string{"/openapi.json": "application/json", "/docs": "text/html", "/docs/profiles": "text/html"} {
		w := httptest.NewRecorder()
		docs.New().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s, want 200 %s", path, w.Code, w.Header().Get("Content-Type"), kind)
		}
	}
}

// TestDocsLinkNoBackend lists what the function is made of: of this module the
// description alone, and no client of a cloud.
func TestDocsLinkNoBackend(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		own, ours := strings.CutPrefix(pkg, "github.com/affinityengine/affinity/")
		allowed := own == "functions/docs" || strings.HasPrefix(own, "shared/openapi")
		if ours && !allowed || strings.HasPrefix(pkg, "cloud.google.com/") || strings.HasPrefix(pkg, "google.golang.org/grpc") || strings.Contains(pkg, "yaml") {
			t.Errorf("functions/docs links %s", pkg)
		}
	}
}
