package recomputes

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/reenrich"
)

// mountReenrich takes the requests for re-enrichments.
func (rc recomputes) mountReenrich(rt *httpapi.Router) {
	rt.Handle("POST /1/reenrich", rc.startReenrich)
	rt.Handle("GET /1/reenrich", rc.listReenrich)
	rt.Handle("GET /1/reenrich/{id}", rc.getReenrich)
	rt.Handle("POST /1/reenrich/{id}/cancel", rc.cancelReenrich)
}

// reenrichView is a re-enrichment as it is answered.
type reenrichView struct {
	ID     string    `json:"id"`
	State  job.State `json:"state"`
	DryRun bool      `json:"dryRun"`
	Shards shards    `json:"shards"`
	Users  int64     `json:"users"` // with events in the window
	// Events were looked at. WithUnknownObjects of them are Resolved, if one more of
	// their objects is known now, or StillUnknown.
	Events             int64 `json:"events"`
	WithUnknownObjects int64 `json:"withUnknownObjects"`
	Resolved           int64 `json:"resolved"`
	StillUnknown       int64 `json:"stillUnknown"`
	// Faulty rows cannot be read and were left out. Faults are the keys of some, in
	// the answer of one re-enrichment.
	Faulty     int64    `json:"faulty"`
	Faults     []string `json:"faults,omitempty"`
	StartedAt  string   `json:"startedAt"`
	FinishedAt *string  `json:"finishedAt"`

	RetentionDays int    `json:"retentionDays"`
	PlannedUsers  int64  `json:"plannedUsers"`
	VisitedUsers  int64  `json:"visitedUsers"`
	Error         string `json:"error,omitempty"`
}

func renderReenrich(j job.Job) reenrichView {
	v := reenrichView{
		ID: j.ID, State: j.State, DryRun: j.Kind == reenrich.DryRun,
		Shards: shards{j.Totals.Shards, j.Totals.Done, j.Totals.Failed},
		Users:  j.Totals.Users, Events: j.Totals.Events,
		WithUnknownObjects: j.Totals.Changed + j.Totals.Left, Resolved: j.Totals.Changed, StillUnknown: j.Totals.Left,
		Faulty: j.Totals.Faulty, StartedAt: rfc3339(j.StartedAt),
		RetentionDays: j.RetentionDays, PlannedUsers: j.Totals.PlannedUsers, VisitedUsers: j.Totals.Visited, Error: j.Error,
	}
	if !j.FinishedAt.IsZero() {
		at := rfc3339(j.FinishedAt)
		v.FinishedAt = &at
	}
	return v
}

// startReenrich answers with the job that it starts, or with the one under way.
func (rc recomputes) startReenrich(w http.ResponseWriter, r *http.Request) error {
	app, err := httpapi.Tenant(rc.Auth, r, auth.Admin)
	if err != nil {
		return err
	}
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	var order struct {
		DryRun bool `json:"dryRun"`
	}
	if err := decodeOrder(body, &order, "dryRun"); err != nil {
		return err
	}
	j, err := rc.Reenrich.StartOne(r.Context(), app.ID, order.DryRun)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderReenrich(j))
}

func (rc recomputes) listReenrich(w http.ResponseWriter, r *http.Request) error {
	app, err := httpapi.Tenant(rc.Auth, r, auth.Admin)
	if err != nil {
		return err
	}
	jobs, err := rc.Reenrich.List(r.Context(), app.ID, maxListed)
	if err != nil {
		return fmt.Errorf("list re-enrichments: %w", err)
	}
	answer := struct {
		Reenrichments []reenrichView `json:"reenrichments"`
	}{make([]reenrichView, len(jobs))}
	for i, j := range jobs {
		answer.Reenrichments[i] = renderReenrich(j)
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func (rc recomputes) getReenrich(w http.ResponseWriter, r *http.Request) error {
	app, err := httpapi.Tenant(rc.Auth, r, auth.Admin)
	if err != nil {
		return err
	}
	j, err := rc.Reenrich.Find(r.Context(), app.ID, r.PathValue("id"))
	if errors.Is(err, job.ErrNotFound) {
		return unknownReenrich(r)
	}
	if err != nil {
		return err
	}
	v := renderReenrich(j)
	if j.Totals.Faulty > 0 {
		if v.Faults, err = rc.Reenrich.Jobs.Faults(r.Context(), app.ID, j.ID, job.MaxFaults); err != nil {
			return fmt.Errorf("faults of re-enrichment: %w", err)
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, v)
}

func unknownReenrich(r *http.Request) error {
	return httpapi.Errorf(http.StatusNotFound, "No re-enrichment %q: GET /1/reenrich lists those there are", r.PathValue("id"))
}

func (rc recomputes) cancelReenrich(w http.ResponseWriter, r *http.Request) error {
	j, err := rc.cancelJob(r, rc.Reenrich.Runner, "Re-enrichment", unknownReenrich)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderReenrich(j))
}
