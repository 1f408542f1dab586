package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerReenrich registers the routes of re-enrichments.
func (h handler) registerReenrich(rt *httpapi.Router) {
	rt.HandleOwn("POST /1/reenrich", auth.ServeBoth(h.Auth.TenantKey, h.startReenrich, auth.Admin))
	jobs := resource[api.Reenrichment]{
		handler: h, runner: h.Reenrich.Runner, path: "/1/reenrich", noun: "re-enrichment",
		permission: auth.Admin, cancelled: auditlog.ReenrichCancel, render: h.renderReenrich,
		list: func(all []api.Reenrichment) any { return api.Reenrichments{Reenrichments: all} },
		detailed: func(ctx context.Context, j job.Job, faults []string) (any, error) {
			answer := h.renderReenrich(ctx, j)
			answer.Faults = faults
			return answer, nil
		},
	}
	rt.HandleOwn("GET /1/reenrich", jobs.latest)
	rt.HandleOwn("GET /1/reenrich/{id}", jobs.get)
	rt.HandleOwn("POST /1/reenrich/{id}/cancel", jobs.cancel)
}

func (h handler) renderReenrich(ctx context.Context, j job.Job) api.Reenrichment {
	p, c := job.ParamsOf[reenrich.Params](j), job.CountsOf[reenrich.Counts](j.Totals.Counts)
	return api.Reenrichment{
		ID: j.ID, State: api.JobState(j.State), DryRun: j.Kind == reenrich.DryRun, NumericBands: p.Versions(),
		Shards: answers.Shards(j),
		Users:  c.Known, Events: c.Events,
		WithUnknownObjects: c.Resolved + c.StillUnknown, Resolved: c.Resolved, StillUnknown: c.StillUnknown,
		Faulty: c.Faulty, StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j),
		Wait: h.jobs.Wait(ctx, j), RetentionDays: p.RetentionDays, PlannedUsers: j.Totals.PlannedUsers,
		VisitedUsers: c.Users, Error: j.Error,
	}
}

// startReenrich starts a job. If one is under way, the answer is that one.
func (h handler) startReenrich(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	const want = "empty or an object with no other keys than dryRun and numericBands, true or false"
	request, err := readRequest[api.ReenrichRequest](w, r, api.MaxAdminBody, want)
	if err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.ReenrichStart}
	start := func() (job.Job, error) { return h.Reenrich.StartOne(r.Context(), app.ID, request.DryRun) }
	switch {
	case request.DryRun && request.NumericBands:
		return httpapi.Errorf(http.StatusUnprocessableEntity, "dryRun and numericBands cannot both be true")
	case request.DryRun:
		change.Detail = "dry run"
	case request.NumericBands:
		change.Detail = "numeric bands"
		start = func() (job.Job, error) { return h.Reenrich.StartBands(r.Context(), app.ID, true) }
	}
	j, err := h.jobs.Record(r.Context(), change, start)
	if errors.Is(err, reenrich.ErrNoBands) {
		return httpapi.Errorf(http.StatusConflict, "No index of the app has numericBands: set them in its settings first")
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.renderReenrich(r.Context(), j))
}
