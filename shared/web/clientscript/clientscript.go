// Package clientscript serves the client script: the JavaScript by which a web page sends
// events and gets an order back. It is v1.js, as it stands here: a page loads it from the
// engine and checks it by its hash, so a released v1.js never changes. The package keeps
// no data.
package clientscript

import (
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"html"
	"net/http"

	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// path is where the newest version is.
const path = "/client/v1.js"

var (
	//go:embed v1.js
	script []byte
	//go:embed v1.d.ts
	types []byte

	files = map[string]httpapi.Static{
		path:              httpapi.NewStatic("text/javascript; charset=utf-8", script),
		"/client/v1.d.ts": httpapi.NewStatic("text/plain; charset=utf-8", types),
	}
)

// integrity returns the hash of the newest version, for the attribute integrity of a
// script (Subresource Integrity).
func integrity() string {
	sum := sha512.Sum384(script)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Tag returns the element by which a page loads the newest version from an engine.
func Tag(url string) string {
	return `<script src="` + html.EscapeString(url) + path + `" integrity="` + integrity() + `" crossorigin="anonymous"></script>`
}

// Register adds the routes of the script and of its types.
func Register(rt *httpapi.Router) {
	rt.Handle("GET /client/{file}", serve)
	rt.Handle("GET /client.js", func(w http.ResponseWriter, _ *http.Request) error {
		open(w)
		w.Header().Set("Cache-Control", httpapi.Minutes)
		w.Header().Set("Location", path)
		w.WriteHeader(http.StatusFound)
		return nil
	})
}

func serve(w http.ResponseWriter, r *http.Request) error {
	file, ok := files[r.URL.Path]
	if !ok {
		return httpapi.Errorf(http.StatusNotFound, "No such version: GET %s is the newest", path)
	}
	open(w)
	file.Serve(w, r, httpapi.Immutable)
	return nil
}

// open lets pages of every site load an answer, also those that isolate themselves
// (Cross-Origin-Embedder-Policy).
func open(w http.ResponseWriter) { w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin") }
