// Package openapi serves the description of the public API: as an OpenAPI 3.1
// document for programs, and as HTML pages for people, which are rendered from
// the same document.
//
// The document is embedded and keeps no data. Its source is in the folder spec;
// "go test ./shared/openapi -rewrite" builds it. The pages need no JavaScript and
// load nothing.
package openapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// Handler answers GET and HEAD of /openapi.json, /docs and /docs/{resource}.
// Errors are JSON as everywhere in the API.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	answers, err := all()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "Internal error")
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	answer, ok := answers[path]
	resource, page := strings.CutPrefix(path, "/docs/")
	switch {
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case !ok && page && !strings.Contains(resource, "/"):
		refuse(w, http.StatusNotFound, fmt.Sprintf("No page %q: GET /docs lists those that exist", resource))
	case !ok:
		refuse(w, http.StatusNotFound, "Path not supported by this API: GET /docs lists its routes")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	default:
		answer.send(w, r)
	}
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

// refuse answers with {"status":N,"message":"..."}.
func refuse(w http.ResponseWriter, status int, message string) {
	body, _ := json.Marshal(struct {
		Status  int    `json:"status"`
		Message string `json:"message"`
	}{status, message})
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client is gone
}
