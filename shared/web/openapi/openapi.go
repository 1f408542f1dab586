// Package openapi serves the description of the public API: as an OpenAPI 3.1
// document for programs, and as HTML pages for people, which are rendered from
// the same document.
//
// The document is embedded and keeps no data. Its source is in the folder spec;
// "go test ./shared/web/openapi -rewrite" builds it. The pages need no JavaScript and
// load nothing.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
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

// served is an answer that does not change while the process lives.
type served struct {
	contentType string
	etag        string
	body        []byte
}

func newServed(contentType string, body []byte) served {
	sum := sha256.Sum256(body)
	return served{contentType, `"` + hex.EncodeToString(sum[:12]) + `"`, body}
}

// all are the answers by path, made at the first request.
var all = sync.OnceValues(func() (map[string]served, error) {
	answers := map[string]served{"/openapi.json": newServed("application/json; charset=utf-8", document)}
	pages, err := render(document)
	if err != nil {
		return nil, err
	}
	for path, page := range pages {
		answers[path] = newServed("text/html; charset=utf-8", page)
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
	answer.send(w, r)
	return nil
}

func (s served) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Content-Type", s.contentType)
	h.Set("Etag", s.etag)
	// ServeContent answers HEAD, conditional requests and ranges.
	http.ServeContent(w, r, "", noTime, bytes.NewReader(s.body))
}
