package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerReenrich registers the routes of re-enrichments.
func (h handler) registerReenrich(rt *httpapi.Router) {
	rt.HandleOwn("POST /1/reenrich", h.startReenrich)
	rt.HandleOwn("GET /1/reenrich", h.listReenrich)
	rt.HandleOwn("GET /1/reenrich/{id}", h.getReenrich)
	rt.HandleOwn("POST /1/reenrich/{id}/cancel", h.cancelReenrich)
}

func (h handler) renderReenrich(ctx context.Context, j job.Job) api.Reenrichment {
	p, c := job.ParamsOf[reenrich.Params](j), job.CountsOf[reenrich.Counts](j.Totals.Counts)
	return api.Reenrichment{
		ID: j.ID, State: api.JobState(j.State), DryRun: j.Kind == reenrich.DryRun, NumericBands: p.Versions(), Shards: answers.Shards(j),
		Users: c.Known, Events: c.Events,
		WithUnknownObjects: c.Resolved + c.StillUnknown, Resolved: c.Resolved, StillUnknown: c.StillUnknown,
		Faulty: c.Faulty, StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j),
		Wait: h.jobs.Wait(ctx, j), RetentionDays: p.RetentionDays, PlannedUsers: j.Totals.PlannedUsers, VisitedUsers: c.Users, Error: j.Error,
	}
}

// startReenrich starts a job. If one is under way, the answer is that one.
func (h handler) startReenrich(w http.ResponseWriter, r *http.Request) error {
	app, key, err := h.Auth.TenantKey(r, auth.Admin)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, api.MaxAdminBody)
	if err != nil {
		return err
	}
	var request api.ReenrichRequest
	if err := decodeBody(body, &request, "empty or an object with no other keys than dryRun and numericBands, true or false"); err != nil {
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
		start = func() (job.Job, error) { return h.Reenrich.StartBands(r.Context(), app.ID, true, 0) }
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

func (h handler) listReenrich(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	jobs, err := h.Reenrich.List(r.Context(), app.ID, api.MaxJobsListed)
	if err != nil {
		return fmt.Errorf("list re-enrichments: %w", err)
	}
	answer := api.Reenrichments{Reenrichments: make([]api.Reenrichment, len(jobs))}
	for i, j := range jobs {
		answer.Reenrichments[i] = h.renderReenrich(r.Context(), j)
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (h handler) getReenrich(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	j, err := h.Reenrich.Find(r.Context(), app.ID, r.PathValue("id"))
	if errors.Is(err, job.ErrNotFound) {
		return unknownReenrich(r)
	}
	if err != nil {
		return err
	}
	v := h.renderReenrich(r.Context(), j)
	if j.Totals.Counts[job.CountFaulty] > 0 {
		if v.Faults, err = h.Reenrich.Jobs.Faults(r.Context(), app.ID, j.ID, job.MaxFaults); err != nil {
			return fmt.Errorf("read faults of re-enrichment: %w", err)
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, v)
}

func unknownReenrich(r *http.Request) error {
	return httpapi.Errorf(http.StatusNotFound, "No re-enrichment %q: GET /1/reenrich lists those that exist", r.PathValue("id"))
}

func (h handler) cancelReenrich(w http.ResponseWriter, r *http.Request) error {
	j, err := h.cancelJob(r, auth.Admin, auditlog.ReenrichCancel, h.Reenrich.Runner, "Re-enrichment", unknownReenrich)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.renderReenrich(r.Context(), j))
}
