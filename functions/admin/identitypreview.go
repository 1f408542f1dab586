package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/linkpreview"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerIdentityPreview registers the routes of previews of links.
func (h handler) registerIdentityPreview(rt *httpapi.Router) {
	rt.HandleOwn("POST /1/identities/preview", auth.ServeBoth(h.Auth.TenantKey, h.startIdentityPreview, auth.Admin))
	previews := h.identityPreviews()
	rt.HandleOwn("GET /1/identities/preview", previews.latest)
	rt.HandleOwn("GET /1/identities/preview/{id}", previews.get)
	rt.HandleOwn("POST /1/identities/preview/{id}/cancel", previews.cancel)
}

// identityPreviews are the routes that previews of links have in common with other jobs.
func (h handler) identityPreviews() resource[api.IdentityPreview] {
	return resource[api.IdentityPreview]{
		handler: h, runner: h.LinkPreviews.Runner, path: "/1/identities/preview", noun: "preview",
		permission: auth.Admin, cancelled: auditlog.IdentityPreviewCancel, render: h.renderIdentityPreview,
		list: func(all []api.IdentityPreview) any { return api.IdentityPreviews{Previews: all} },
		detailed: func(ctx context.Context, j job.Job, faults []string) (any, error) {
			answer := h.renderIdentityPreview(ctx, j)
			answer.Faults = faults
			if j.State != job.Done {
				return answer, nil
			}
			links, err := h.LinkPreviews.Result(ctx, j)
			switch {
			case errors.Is(err, job.ErrNotFound):
				answer.State, answer.Error = api.JobFailed, "what it has found is not stored any more"
			case err != nil:
				return nil, fmt.Errorf("read the preview: %w", err)
			default:
				answer.Links = &links
			}
			return answer, nil
		},
	}
}

// startIdentityPreview starts a preview of the links of the app.
func (h handler) startIdentityPreview(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	const want = "empty or an object with no other key than days"
	request, err := readRequest[api.IdentityPreviewRequest](w, r, api.MaxAdminBody, want)
	if err != nil {
		return err
	}
	if request.Days < 0 || request.Days > api.MaxPreviewDays {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "days must be from 1 to %d, got %d", api.MaxPreviewDays,
			request.Days)
	}
	days := cmp.Or(request.Days, api.DefaultPreviewDays)
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.IdentityPreview,
		Detail: fmt.Sprintf("%d days", days)}
	j, err := h.jobs.Record(r.Context(), change,
		func() (job.Job, error) { return h.LinkPreviews.Start(r.Context(), app.ID, days) })
	switch {
	case errors.Is(err, linkpreview.ErrBusy):
		return httpapi.Errorf(http.StatusConflict, "Preview %s is under way: the app can have one at a time", j.ID)
	case err != nil:
		return err
	}
	return h.identityPreviews().write(w, r, j)
}

func (h handler) renderIdentityPreview(ctx context.Context, j job.Job) api.IdentityPreview {
	p, c := job.ParamsOf[linkpreview.Params](j), job.CountsOf[linkpreview.Counts](j.Totals.Counts)
	return api.IdentityPreview{
		ID: j.ID, State: api.JobState(j.State), Days: p.Days, Users: c.Users, PlannedUsers: j.Totals.PlannedUsers,
		Events: c.Events, StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j), Place: h.jobs.Place(ctx, j),
		Faulty: c.Faulty, Error: j.Error,
	}
}
