// Package docs is the public function of what is the same for everybody: the OpenAPI
// document at GET /openapi.json, pages for people at GET /docs, and the client script
// of web pages below GET /client. It needs no key and no settings, and links no backend.
package docs

import (
	"context"
	"log/slog"
	"net/http"
	"time"

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
	return rt
}
