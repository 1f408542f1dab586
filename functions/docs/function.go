// Package docs is the public function of what is the same for everybody: the documents of
// this folder and those of each route, with a search, at GET /docs, the OpenAPI document
// at GET /openapi.json, the client script of web pages below GET /client, and which version
// and commit answers at GET /health. It needs no key and no settings, and links no backend.
package docs

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/web/clientscript"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

func init() { function.Register("Docs", open) }

// Settings are the variables that the function reads: none.
type Settings struct{}

func open(_ context.Context, log *slog.Logger, _ Settings) (http.Handler, error) {
	return New(log, ForClients), nil
}

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 10 * time.Second

// Readers are the people who see the pages.
type Readers int

// ForClients are guides and reference. ForOperators, of an engine on their own machine, get
// the pages about operating and design too.
const (
	ForClients Readers = iota
	ForOperators
)

// New returns the function.
func New(log *slog.Logger, readers Readers) http.Handler {
	rt := httpapi.NewRouter(log)
	rt.Life = Timeout
	rt.Handle("/", serve(sync.OnceValues(func() (*site, error) { return newSite(readers) })))
	clientscript.Register(rt)
	rt.Handle("GET /health", health) // Cloud Run keeps paths that end in z for itself
	return rt
}

// serve answers GET and HEAD of /openapi.json, /docs and every page below it. The site is
// made at the first request.
func serve(made func() (*site, error)) httpapi.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		path := strings.TrimSuffix(r.URL.Path, "/")
		name, below := strings.CutPrefix(path, "/docs/")
		if !below && path != "/docs" && path != "/openapi.json" {
			return httpapi.Errorf(http.StatusNotFound, "%s", httpapi.UnknownPath)
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD, OPTIONS")
			return httpapi.Errorf(http.StatusMethodNotAllowed, "Method Not Allowed")
		}
		s, err := made()
		if err != nil {
			return fmt.Errorf("render the documents: %w", err)
		}
		answer, ok := s.answers[path]
		if path == "/docs/search" {
			answer, err = s.found(r.URL.Query().Get("q"))
		} else if !ok {
			err = httpapi.Errorf(http.StatusNotFound, "No page %q: GET /docs lists those that exist", name)
		}
		if err != nil {
			return err
		}
		w.Header().Set("Content-Security-Policy", contentPolicy)
		answer.Serve(w, r, httpapi.Minutes)
		return nil
	}
}

// health names the release that the load balancer names or, without one, that of the program.
func health(w http.ResponseWriter, r *http.Request) error {
	info, _ := debug.ReadBuildInfo()
	return httpapi.WriteJSON(w, http.StatusOK, api.Health{Status: http.StatusOK, Message: "OK", Version: api.Version,
		Release: cmp.Or(r.Header.Get(api.ReleaseHeader), api.Release(info))})
}
