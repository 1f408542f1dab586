package stack

import (
	"crypto/subtle"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/affinityengine/affinity/functions/admin"
	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/console"
	"github.com/affinityengine/affinity/functions/docs"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/functions/segments"
	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Paths of the private functions on their listener.
const (
	processPath = "/process"
	workerPath  = "/worker"
)

// localLife is how long a request may take that no deployed function answers.
const localLife = 10 * time.Second

// publicFunctions routes requests by the prefix of their path, as the load balancer
// does.
func publicFunctions(b *Backends, w Watch, check *health, secret console.Secret,
	links *console.Links) httpapi.Prefixes {
	own := httpapi.NewRouter(b.Log)
	own.Life = localLife
	own.Handle("GET /healthz", check.serve)
	routes := console.API{
		Ingest:     w.function("ingest", ingest.New(b.ForIngest())),
		Imports:    w.function("imports", imports.New(b.ForImports())),
		Profiles:   w.function("profiles", profiles.New(b.ForProfiles())),
		Rank:       w.function("rank", rank.New(b.ForRank())),
		Strategies: w.function("strategies", strategies.New(b.ForStrategies())),
		Catalog:    w.function("catalog", catalog.New(b.ForCatalog())),
		Admin:      w.function("admin", admin.New(b.ForAdmin())),
		Segments:   w.function("segments", segments.New(b.ForSegments())),
	}.Routes()
	pages := console.New(console.Options{Log: b.Log, API: routes, Auth: b.Auth, Secret: secret,
		Ended: b.Config, Now: b.Now, Links: links})
	documents := docs.New(b.Log, docs.ForOperators)
	return append(slices.Clone(routes), []httpapi.Prefix{
		{Prefix: "/openapi.json", Handler: documents},
		{Prefix: "/docs", Handler: documents},
		{Prefix: "/client.js", Handler: documents},
		{Prefix: "/client", Handler: documents},
		{Prefix: "/health", Handler: documents},
		{Prefix: "/console", Handler: pages},
		{Prefix: "", Handler: firstPage(pages, own)},
	}...)
}

// measured serves the metrics, not to web pages.
func measured(log *slog.Logger, metrics http.Handler) http.Handler {
	rt := httpapi.NewRouter(log)
	rt.OwnOrigin, rt.Life = true, localLife
	rt.Handle("/", func(w http.ResponseWriter, r *http.Request) error {
		metrics.ServeHTTP(w, r)
		return nil
	})
	return rt
}

// firstPage serves the console at /, and nothing else of it.
func firstPage(pages, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/" {
			pages.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

func privateFunctions(b *Backends, w Watch) http.Handler {
	applied := w.function("process", process.New(b.ForProcess()))
	return httpapi.Prefixes{
		{Prefix: processPath, Handler: http.StripPrefix(processPath, root(applied))},
		{Prefix: workerPath, Handler: http.StripPrefix(workerPath, w.function("worker", worker.New(b.ForWorker())))},
		{Prefix: "", Handler: httpapi.NewRouter(b.Log)},
	}
}

// root replaces an empty path with /, as the platform does.
func root(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" {
			r.URL.Path = "/"
		}
		h.ServeHTTP(w, r)
	})
}

// guard answers 403 to requests without the token, as IAM does in the cloud.
func guard(token string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1 {
			http.Error(w, `{"status":403,"message":"Forbidden"}`, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
