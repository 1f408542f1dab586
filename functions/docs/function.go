// Package docs is the public function of what is the same for everybody: the OpenAPI
// document at GET /openapi.json, pages for people at GET /docs, the client script of web
// pages below GET /client, and which version and commit answers at GET /health. It needs
// no key and no settings, and links no backend.
package docs

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/backend/function"
	"github.com/affinityengine/affinity/shared/web/clientscript"
	"github.com/affinityengine/affinity/shared/web/httpapi"
	"github.com/affinityengine/affinity/shared/web/openapi"
)

func init() { function.Register("Docs", open) }

// Settings are the variables that the function reads: none.
type Settings struct{}

func open(_ context.Context, log *slog.Logger, _ Settings) (http.Handler, error) {
	return New(log), nil
}

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 10 * time.Second

// New returns the function.
func New(log *slog.Logger) http.Handler {
	rt := httpapi.NewRouter(log)
	rt.Life = Timeout
	rt.Handle("/", openapi.Serve)
	clientscript.Register(rt)
	rt.Handle("GET /health", health) // Cloud Run keeps paths that end in z for itself
	return rt
}

// health names the release that the load balancer names or, without one, that of the program.
func health(w http.ResponseWriter, r *http.Request) error {
	info, _ := debug.ReadBuildInfo()
	return httpapi.WriteJSON(w, http.StatusOK, api.Health{Status: http.StatusOK, Message: "OK", Version: api.Version,
		Release: cmp.Or(r.Header.Get(api.ReleaseHeader), api.Release(info))})
}
