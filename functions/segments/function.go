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
	rt.Count(limit.Jobs, "POST /1/segments/refresh", "POST /1/segments/{name}/export")
	rt.HandleOwn("POST /1/segments/query", h.query)
	rt.HandleOwn("GET /1/segments/histogram", h.histogram, "facet", "value", "halfLife")
	rt.HandleOwn("POST /1/segments/refresh", h.refresh)
	rt.HandleOwn("GET /1/segments/refresh/{id}", h.build)
	rt.HandleOwn("GET /1/segments", h.list)
	rt.HandleOwn("GET /1/segments/{name}", h.get)
	rt.HandleOwn("PUT /1/segments/{name}", h.save, "create")
	rt.HandleOwn("DELETE /1/segments/{name}", h.delete)
	rt.HandleOwn("POST /1/segments/{name}/export", h.startExport)
	rt.HandleOwn("GET /1/segments/export/{id}", h.export)
	rt.HandleOwn("GET /1/segments/export/{id}/file", h.file)
	rt.HandleOwn("GET /1/values", h.values, "facet", "limit", "sample")
	return rt
}

// counter returns the app of a key that may count users, and whether it may also know
// small counts and tokens.
func (h handler) counter(r *http.Request) (app config.App, key string, admin bool, err error) {
	app, grant, err := h.Auth.TenantGrant(r, auth.Recommendation, auth.Admin)
	if err == nil {
		err = grant.Index("")
	}
	return app, grant.Key, err == nil && grant.Require(auth.Admin) == nil, err
}

// countView hides a small number of users from keys below admin.
func countView(users int, admin bool) api.UserCount {
	if !admin && users < api.MinSegmentUsers {
		return api.UserCount{Fewer: true}
	}
	return api.UserCount{N: int64(users)}
}
