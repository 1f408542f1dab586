package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
	"github.com/affinityengine/affinity/shared/wire"
)

// registerCrowd registers the routes of crowd statistics.
func (h handler) registerCrowd(rt *httpapi.Router) {
	rt.HandleOwn("POST /1/crowd", auth.ServeBoth(h.Auth.TenantGrant, h.startCrowd, auth.Recommendation))
	rt.HandleOwn("GET /1/crowd", auth.Serve(h.Auth.Tenant, h.crowd, auth.Recommendation))
	builds := resource[api.CrowdBuild]{
		handler: h, runner: h.Crowd.Runner, path: "/1/crowd", noun: "build",
		permission: auth.Recommendation, cancelled: auditlog.CrowdCancel, render: h.renderCrowd,
	}
	rt.HandleOwn("POST /1/crowd/{id}/cancel", builds.cancel) // rankings keep the statistics that they use
}

func (h handler) renderCrowd(ctx context.Context, j job.Job) api.CrowdBuild {
	p, c := job.ParamsOf[crowdbuild.Params](j), job.CountsOf[crowdbuild.Counts](j.Totals.Counts)
	return api.CrowdBuild{
		ID: j.ID, State: api.JobState(j.State), Indexes: p.Indexes, AsOf: api.At(p.AsOf), Sampled: p.Sampled(),
		Shards: answers.Shards(j),
		Users:  c.Known, Events: c.Events, WithUnknownObjects: c.Unknown, StartedAt: api.At(j.StartedAt),
		FinishedAt: answers.Finished(j),
		Place:      h.jobs.Place(ctx, j), Trigger: string(p.Trigger), PlannedUsers: j.Totals.PlannedUsers,
		VisitedUsers: c.Users, Faulty: c.Faulty, Error: j.Error,
	}
}

// startCrowd starts a build of the statistics of an index, or of all of them.
func (h handler) startCrowd(w http.ResponseWriter, r *http.Request, app config.App, grant auth.Grant) error {
	request, err := readRequest[struct {
		Index *string `json:"index"`
	}](w, r, api.MaxAdminBody, "empty or an object with no other key than index, a string")
	if err != nil {
		return err
	}
	index := ""
	if request.Index != nil {
		if index = *request.Index; index == "" {
			return httpapi.Errorf(http.StatusUnprocessableEntity,
				"index must not be empty: leave it out to build the statistics of all indexes")
		}
	}
	if err := grant.Index(index); err != nil {
		return err
	}
	change := auditlog.Change{App: app.ID, Actor: grant.Key, Action: auditlog.CrowdStart, Detail: "all indexes"}
	if index != "" {
		change.Detail = "index " + index
	}
	j, err := h.jobs.Record(r.Context(), change,
		func() (job.Job, error) { return h.Crowd.StartManual(r.Context(), app.ID, index) })
	switch {
	case errors.Is(err, crowdbuild.ErrNoObjects) && index != "":
		return httpapi.Errorf(http.StatusUnprocessableEntity, "Index %q has no objects: load its catalog first", index)
	case errors.Is(err, crowdbuild.ErrNoObjects):
		return httpapi.Errorf(http.StatusUnprocessableEntity, "The app has no objects: load its catalog first")
	case err != nil:
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, h.renderCrowd(r.Context(), j))
}

// crowd lists the statistics of the app's indexes, and the latest builds.
func (h handler) crowd(w http.ResponseWriter, r *http.Request, app config.App) error {
	builds, err := h.Crowd.List(r.Context(), app.ID, api.MaxCrowdBuilds)
	if err != nil {
		return fmt.Errorf("list builds of crowd statistics: %w", err)
	}
	indexes, err := h.Store.Catalog.CatalogIndexes(r.Context(), app.ID)
	if err != nil {
		return fmt.Errorf("list the indexes with objects: %w", err)
	}
	answer := api.Crowd{Indexes: append([]string{}, indexes...), Generations: []api.CrowdGeneration{},
		Builds: make([]api.CrowdBuild, len(builds))}
	for i, j := range builds {
		answer.Builds[i] = h.renderCrowd(r.Context(), j)
		if answer.Builds[i].Faults, err = h.crowdFaults(r, j); err != nil {
			return err
		}
		if j.State.Ended() {
			continue
		}
		for _, index := range answer.Builds[i].Indexes {
			answer.Generations = append(answer.Generations, api.CrowdGeneration{
				Index: index, AsOf: answer.Builds[i].AsOf, Events: answer.Builds[i].Events, Users: answer.Builds[i].Users,
				Sampled: answer.Builds[i].Sampled, State: answer.Builds[i].State,
			})
		}
	}
	current, err := h.currentCrowd(r.Context(), app.ID)
	if err != nil {
		return err
	}
	answer.Generations = append(answer.Generations, current...)
	slices.SortStableFunc(answer.Generations, func(a, b api.CrowdGeneration) int {
		return cmp.Or(strings.Compare(a.Index, b.Index), a.AsOf.Compare(b.AsOf.Time))
	})
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// crowdFaults returns the faults of a build. They name users, which only the permission
// admin may list.
func (h handler) crowdFaults(r *http.Request, j job.Job) ([]string, error) {
	if j.Totals.Counts[job.CountFaulty] == 0 {
		return nil, nil
	}
	_, err := h.Auth.AppID(r, auth.Admin)
	switch {
	case errors.Is(err, auth.ErrForbidden):
		return nil, nil
	case err != nil:
		return nil, err
	}
	faults, err := h.Crowd.Jobs.Faults(r.Context(), j.App, j.ID, api.MaxFaults)
	if err != nil {
		return nil, fmt.Errorf("list the faults of a build: %w", err)
	}
	return faults, nil
}

// currentCrowd returns the statistics that rankings use.
func (h handler) currentCrowd(ctx context.Context, app string) ([]api.CrowdGeneration, error) {
	indexes, err := h.Store.Crowd.CrowdIndexes(ctx, app)
	if err != nil {
		return nil, err
	}
	var current []api.CrowdGeneration
	for _, index := range indexes {
		m, _, err := crowd.ReadManifest(ctx, h.Store.Crowd, h.Log, app, index)
		if errors.Is(err, wire.ErrNewer) {
			continue // rankings by this version have none
		}
		if err != nil {
			return nil, err
		}
		if g := m.Current; g.Name != "" {
			current = append(current, api.CrowdGeneration{
				Index: index, AsOf: api.At(time.UnixMilli(g.AsOf)), Events: g.Events, Users: g.Users, Sampled: g.Sampled(),
				State: api.JobDone,
			})
		}
	}
	return current, nil
}
