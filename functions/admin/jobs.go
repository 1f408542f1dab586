package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// resource serves what the routes of all kinds of jobs have in common. V is the answer that
// describes a job.
type resource[V any] struct {
	handler
	runner *job.Runner
	// path is the route that lists the jobs, noun what a message calls one of them.
	path, noun string
	// permission is what a key needs to cancel one.
	permission string
	cancelled  auditlog.Action
	render     func(context.Context, job.Job) V
	// list makes the answer that lists jobs, detailed that of one job with its faults.
	list     func([]V) any
	detailed func(ctx context.Context, j job.Job, faults []string) (any, error)
}

// latest lists the latest jobs.
func (a resource[V]) latest(w http.ResponseWriter, r *http.Request) error {
	app, err := a.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	jobs, err := a.runner.List(r.Context(), app.ID, api.MaxJobsListed)
	if err != nil {
		return fmt.Errorf("list the jobs of %s: %w", a.path, err)
	}
	answers := make([]V, len(jobs))
	for i, j := range jobs {
		answers[i] = a.render(r.Context(), j)
	}
	return httpapi.WriteJSON(w, http.StatusOK, a.list(answers))
}

// get answers with one job.
func (a resource[V]) get(w http.ResponseWriter, r *http.Request) error {
	app, err := a.Auth.Tenant(r, auth.Admin)
	if err != nil {
		return err
	}
	j, err := a.runner.Find(r.Context(), app.ID, r.PathValue("id"))
	if errors.Is(err, job.ErrNotFound) {
		return a.unknown(r)
	}
	if err != nil {
		return err
	}
	return a.write(w, r, j)
}

// write answers one job.
func (a resource[V]) write(w http.ResponseWriter, r *http.Request, j job.Job) error {
	answer, err := a.answer(r.Context(), j)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// answer describes one job, with its faults.
func (a resource[V]) answer(ctx context.Context, j job.Job) (any, error) {
	var faults []string
	if j.Totals.Counts[job.CountFaulty] > 0 {
		var err error
		if faults, err = a.runner.Jobs.Faults(ctx, j.App, j.ID, api.MaxFaults); err != nil {
			return nil, fmt.Errorf("list the faults of a %s: %w", a.noun, err)
		}
	}
	return a.detailed(ctx, j, faults)
}

// cancel cancels a job. Only an unfinished job can be cancelled.
func (a resource[V]) cancel(w http.ResponseWriter, r *http.Request) error {
	app, key, err := a.Auth.TenantKey(r, a.permission)
	if err != nil {
		return err
	}
	// A request that names no running job changes nothing and has no entry.
	j, err := a.runner.Find(r.Context(), app.ID, r.PathValue("id"))
	if err == nil && j.State.Ended() {
		err = job.ErrEnded
	}
	if err == nil {
		j, err = a.jobs.Record(r.Context(), auditlog.Change{App: app.ID, Actor: key, Action: a.cancelled,
			Subject: j.ID}, func() (job.Job, error) {
			return a.runner.Cancel(r.Context(), app.ID, j.ID)
		})
	}
	switch {
	case errors.Is(err, job.ErrNotFound):
		return a.unknown(r)
	case errors.Is(err, job.ErrEnded):
		return httpapi.Errorf(http.StatusConflict, "%s%s %s is %s: it cannot be cancelled any more",
			strings.ToUpper(a.noun[:1]), a.noun[1:], j.ID, j.State)
	case err != nil:
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, a.render(r.Context(), j))
}

func (a resource[V]) unknown(r *http.Request) error {
	return httpapi.Errorf(http.StatusNotFound, "No %s %q: GET %s lists the latest", a.noun, r.PathValue("id"), a.path)
}
