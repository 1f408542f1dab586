// Package docs is the public function that describes the API: the OpenAPI
// document at GET /openapi.json and pages for people at GET /docs. It needs no
// key and no configuration, and links no backend.
package docs

import (
	"net/http"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/affinityengine/affinity/shared/openapi"
)

func init() {
	functions.HTTP("Docs", New().ServeHTTP)
}

// New returns the function.
func New() http.Handler { return openapi.Handler() }
