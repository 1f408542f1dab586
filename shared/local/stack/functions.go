package stack

import (
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/affinityengine/affinity/functions/catalog"
	"github.com/affinityengine/affinity/functions/docs"
	"github.com/affinityengine/affinity/functions/imports"
	"github.com/affinityengine/affinity/functions/ingest"
	"github.com/affinityengine/affinity/functions/process"
	"github.com/affinityengine/affinity/functions/profiles"
	"github.com/affinityengine/affinity/functions/rank"
	"github.com/affinityengine/affinity/functions/recomputes"
	"github.com/affinityengine/affinity/functions/strategies"
	"github.com/affinityengine/affinity/functions/worker"
	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/httpapi"
)

// Paths of the private functions on their listener.
const (
	processPath = "/process"
	workerPath  = "/worker"
)

// publicFunctions routes requests by the prefix of their path, as the load balancer
// does.
func publicFunctions(b *Backends, metrics, operator http.Handler) http.Handler {
	own := httpapi.NewRouter(b.Log)
	own.Handle("GET /healthz", func(w http.ResponseWriter, _ *http.Request) error {
		return httpapi.WriteJSON(w, http.StatusOK, api.Health{Status: http.StatusOK, Message: "OK", Version: api.Version})
	})
	return prefixes{
		{"/1/events/import", imports.New(b.ForImports())},
		{"/1/events/recent", profiles.New(b.ForProfiles())},
		{"/1/events", ingest.New(b.ForIngest())},
		{"/v1", ingest.New(b.ForIngest())},
		{"/1/profiles", profiles.New(b.ForProfiles())},
		{"/1/usertokens", profiles.New(b.ForProfiles())},
		{"/1/explain", profiles.New(b.ForProfiles())},
		{"/1/optouts", profiles.New(b.ForProfiles())},
		{"/1/rank", rank.New(b.ForRank())},
		{"/1/boosts", rank.New(b.ForRank())},
		{"/1/feeds", rank.New(b.ForRank())},
		{"/1/strategies", strategies.New(b.ForStrategies())},
		{"/1/indexes", catalog.New(b.ForCatalog())},
		{"/1/recomputes", recomputes.New(b.ForRecomputes())},
		{"/1/reenrich", recomputes.New(b.ForRecomputes())},
		{"/1/export", recomputes.New(b.ForRecomputes())},
		{"/1/dump", recomputes.New(b.ForRecomputes())},
		{"/1/audit-log", recomputes.New(b.ForRecomputes())},
		{"/1/usage", recomputes.New(b.ForRecomputes())},
		{"/1/crowd", recomputes.New(b.ForRecomputes())},
		{"/1/segments", recomputes.New(b.ForRecomputes())},
		{"/1/values", recomputes.New(b.ForRecomputes())},
		{"/1/backtests", recomputes.New(b.ForRecomputes())},
		{"/1/schema", recomputes.New(b.ForRecomputes())},
		{"/1/audits", recomputes.New(b.ForRecomputes())},
		{"/openapi.json", docs.New(b.Log)},
		{"/docs", docs.New(b.Log)},
		{"/local", operator},
		{"/metrics", metrics},
		{"", own},
	}
}

func privateFunctions(b *Backends) http.Handler {
	return prefixes{
		{processPath, http.StripPrefix(processPath, root(process.New(b.ForProcess())))},
		{workerPath, http.StripPrefix(workerPath, worker.New(b.ForWorker()))},
		{"", httpapi.NewRouter(b.Log)},
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

// prefixes serves a request with the first handler whose prefix matches whole
// segments of the path.
type prefixes []struct {
	prefix  string
	handler http.Handler
}

func (p prefixes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, c := range p {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), c.prefix)
		if ok && (rest == "" || rest[0] == '/') {
			c.handler.ServeHTTP(w, r)
			return
		}
	}
}
