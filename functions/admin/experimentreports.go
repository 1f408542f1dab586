package admin

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/backend/answers"
	"github.com/affinityengine/affinity/shared/fault"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/kinds/reports"
	"github.com/affinityengine/affinity/shared/score/experiment"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// registerReports registers the routes of reports of experiments.
func (h handler) registerReports(rt *httpapi.Router) {
	rt.HandleOwn("POST /1/reports", auth.ServeBoth(h.Auth.TenantKey, h.startReport, auth.Admin))
	all := h.experimentReports()
	rt.HandleOwn("GET /1/reports", all.latest)
	rt.HandleOwn("GET /1/reports/{id}", all.get)
	rt.HandleOwn("POST /1/reports/{id}/cancel", all.cancel)
	rt.HandleOwn("GET /1/experiments/{name}/report", auth.Serve(h.Auth.AppID, h.experimentReport, auth.Admin),
		"metric", "from", "to", "month", "population")
}

// experimentReports are the routes that reports have in common with other jobs.
func (h handler) experimentReports() resource[api.ReportJob] {
	return resource[api.ReportJob]{
		handler: h, runner: h.Reports.Runner, path: "/1/reports", noun: "report",
		permission: auth.Admin, cancelled: auditlog.ReportCancel, render: h.renderReport,
		list: func(all []api.ReportJob) any { return api.Reports{Reports: all} },
		detailed: func(ctx context.Context, j job.Job, faults []string) (any, error) {
			answer := h.renderReport(ctx, j)
			answer.Faults = faults
			return answer, nil
		},
	}
}

// currencyForm is that of the currency of an event, in capital letters.
var currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)

// startReport starts a report of an experiment of the app.
func (h handler) startReport(w http.ResponseWriter, r *http.Request, app config.App, key string) error {
	const want = "an object with no other keys than experiment, from, to and currency"
	request, err := readRequest[api.ReportRequest](w, r, api.MaxAdminBody, want)
	if err != nil {
		return err
	}
	switch {
	case request.Experiment == "":
		return fault.New(fault.Invalid, "experiment is required: the name of the app's experiment, or %q",
			experiment.OfHoldout)
	case request.Currency != "" && !currencyForm.MatchString(request.Currency):
		return fault.New(fault.Invalid, "currency %.20q must be three capital letters, such as EUR", request.Currency)
	}
	change := auditlog.Change{App: app.ID, Actor: key, Action: auditlog.ReportStart, Detail: request.Experiment}
	j, err := h.jobs.Record(r.Context(), change, func() (job.Job, error) {
		return h.Reports.Start(r.Context(), app.ID, reports.Request{Experiment: request.Experiment, From: request.From,
			To: request.To, Currency: request.Currency})
	})
	switch {
	case errors.Is(err, reports.ErrBusy):
		return httpapi.Errorf(http.StatusConflict, "Report %s of %q is under way: an experiment can have one at a time", j.ID,
			request.Experiment)
	case errors.Is(err, reports.ErrUnknown) && request.Experiment == experiment.OfHoldout:
		return httpapi.Errorf(http.StatusNotFound, "The app holds nobody out, so there is nothing to compare: "+
			"the operator's command `affinity app holdout` holds some users out")
	case errors.Is(err, reports.ErrUnknown):
		return httpapi.Errorf(http.StatusNotFound, "The app has no experiment %q now: "+
			"a report is made of one that it has", request.Experiment)
	case err != nil:
		return err
	}
	return h.experimentReports().write(w, r, j)
}

func (h handler) renderReport(ctx context.Context, j job.Job) api.ReportJob {
	p, c := job.ParamsOf[reports.Params](j), job.CountsOf[reports.Counts](j.Totals.Counts)
	return api.ReportJob{
		ID: j.ID, State: api.JobState(j.State), Experiment: p.Experiment, Month: p.Month, From: p.From, To: p.To,
		Users: c.Users, PlannedUsers: j.Totals.PlannedUsers, Events: c.Events,
		StartedAt: api.At(j.StartedAt), FinishedAt: answers.Finished(j), Place: h.jobs.Place(ctx, j),
		Faulty: c.Faulty, Error: j.Error,
	}
}
