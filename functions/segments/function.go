// Package segments is the public function that finds users by their profiles. It answers who
// meets a condition, how many do, how the scores of a value are distributed, and which values
// users have. It keeps segments under names, with their sizes by day, and exports the users of
// one to a file.
//
// Queries read lists. The jobs that build lists and write files are stored in Firestore, and
// function worker runs them.
package segments

import (
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/app/limit"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// Timeout is how long a request may take, as Terraform has it.
const Timeout = 10 * time.Minute

type handler struct {
	Backends
	jobs answers.Jobs
}

// New returns the function over its backends. What names users needs the permission admin; what
// counts them, recommendation.
func New(b Backends) http.Handler {
	h := handler{b, answers.Jobs{Base: b.Base, Before: b.Before}}
	rt := b.Router(Timeout)
	count := func(handle func(http.ResponseWriter, *http.Request, config.App, caller) error) httpapi.Handler {
		return auth.ServeBoth(h.counter, handle, auth.Recommendation, auth.Admin)
	}
	rt.Count(limit.Jobs, "POST /1/segments/refresh", "POST /1/segments/{name}/export")
	rt.HandleOwn("POST /1/segments/query", count(h.query))
	rt.HandleOwn("GET /1/segments/histogram", count(h.histogram), "facet", "value", "halfLife")
	rt.HandleOwn("POST /1/segments/refresh", auth.ServeBoth(h.Auth.TenantKey, h.refresh, auth.Admin))
	rt.HandleOwn("GET /1/segments/refresh/{id}", count(h.build))
	rt.HandleOwn("GET /1/segments", count(h.list))
	rt.HandleOwn("GET /1/segments/{name}", count(h.get))
	rt.HandleOwn("PUT /1/segments/{name}", count(h.save), "create")
	rt.HandleOwn("DELETE /1/segments/{name}", count(h.delete))
	rt.HandleOwn("POST /1/segments/{name}/export", auth.ServeBoth(h.Auth.TenantKey, h.startExport, auth.Admin))
	rt.HandleOwn("GET /1/segments/export/{id}", auth.Serve(h.findExport, h.export, auth.Admin))
	rt.HandleOwn("GET /1/segments/export/{id}/file", auth.Serve(h.findExport, h.file, auth.Admin))
	rt.HandleOwn("GET /1/values", count(h.values), "facet", "limit", "sample")
	return rt
}

// caller is a key that may count users.
type caller struct {
	key   string
	admin bool // it may also know small counts and tokens
}

// counter returns the app and the caller of a request.
func (h handler) counter(r *http.Request, anyOf ...string) (config.App, caller, error) {
	app, grant, err := h.Auth.TenantGrant(r, anyOf...)
	if err == nil {
		err = grant.Index("")
	}
	return app, caller{grant.Key, err == nil && grant.Require(auth.Admin) == nil}, err
}

// countView hides a small number of users from keys below admin.
func countView(users int, admin bool) api.UserCount {
	if !admin && users < api.MinSegmentUsers {
		return api.UserCount{Fewer: true}
	}
	return api.UserCount{N: int64(users)}
}
