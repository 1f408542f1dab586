package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

const reportsPath = "/1/reports"

// StartReport starts a report of an experiment, or of the holdout. If one of it is under way, the error is an
// *api.Error with status 409, so the request is never repeated. For this and the methods below the key needs the
// permission admin.
func (c Jobs) StartReport(ctx context.Context, request api.ReportRequest) (api.ReportJob, error) {
	var answer api.ReportJob
	err := c.call(ctx, never, http.MethodPost, reportsPath, request, &answer)
	return answer, err
}

// Report returns a report by its ID: how far it is.
func (c Jobs) Report(ctx context.Context, id string) (api.ReportJob, error) {
	var answer api.ReportJob
	err := c.call(ctx, always, http.MethodGet, reportsPath+"/"+url.PathEscape(id), nil, &answer)
	return answer, err
}

// Reports returns the latest reports, the newest first.
func (c Jobs) Reports(ctx context.Context) (api.Reports, error) {
	var answer api.Reports
	err := c.call(ctx, always, http.MethodGet, reportsPath, nil, &answer)
	return answer, err
}

// CancelReport cancels a report. If it has ended, the error is an *api.Error with status 409, so the request is never
// repeated.
func (c Jobs) CancelReport(ctx context.Context, id string) (api.ReportJob, error) {
	var answer api.ReportJob
	err := c.call(ctx, never, http.MethodPost, reportsPath+"/"+url.PathEscape(id)+"/cancel", nil, &answer)
	return answer, err
}

// ExperimentReport returns what an experiment, or the holdout, has shown by its last report. If there is none, or none
// of the days that are asked for, the error is an *api.Error with status 404.
func (c Jobs) ExperimentReport(ctx context.Context, name string,
	q api.ExperimentReportQuery) (api.ExperimentReport, error) {
	query := url.Values{}
	for option, value := range map[string]string{"metric": q.Metric, "from": q.From, "to": q.To, "month": q.Month,
		"population": q.Population} {
		if value != "" {
			query.Set(option, value)
		}
	}
	var answer api.ExperimentReport
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/experiments/"+url.PathEscape(name)+"/report", query), nil,
		&answer)
	return answer, err
}
