// Package openapi serves the description of the public API: as an OpenAPI 3.1
// document for programs, and as HTML pages for people, which are rendered from
// the same document.
//
// The document is embedded and keeps no data. Its source is in the folder spec;
// "go test ./shared/web/openapi -rewrite" builds it. The pages need no JavaScript and
// load nothing.
package openapi

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

//go:embed openapi.json
var document []byte

// Document returns the description as OpenAPI 3.1 in JSON.
func Document() []byte { return slices.Clone(document) }

// all are the answers by path, made at the first request.
var all = sync.OnceValues(func() (map[string]httpapi.Static, error) {
	answers := map[string]httpapi.Static{"/openapi.json": httpapi.NewStatic("application/json; charset=utf-8", document)}
	pages, err := render(document)
	if err != nil {
		return nil, err
	}
	for path, page := range pages {
		answers[path] = httpapi.NewStatic("text/html; charset=utf-8", page)
	}
	return answers, nil
})

// Serve is the httpapi.Handler of every path of the description: GET and HEAD of
// /openapi.json, /docs and /docs/{resource}.
func Serve(w http.ResponseWriter, r *http.Request) error {
	answers, err := all()
	if err != nil {
		return fmt.Errorf("render the description: %w", err)
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	answer, ok := answers[path]
	resource, page := strings.CutPrefix(path, "/docs/")
	switch {
	case !ok && page && !strings.Contains(resource, "/"):
		return httpapi.Errorf(http.StatusNotFound, "No page %q: GET /docs lists those that exist", resource)
	case !ok:
		return httpapi.Errorf(http.StatusNotFound, "%s", httpapi.UnknownPath)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		return httpapi.Errorf(http.StatusMethodNotAllowed, "Method Not Allowed")
	}
	w.Header().Set("Content-Security-Policy", contentPolicy)
	answer.Serve(w, r, httpapi.Minutes)
	return nil
}
