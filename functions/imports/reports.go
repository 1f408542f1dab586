package imports

import (
	"encoding/json"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// addReport adds a line with a kept report of an experiment. It is about all indexes.
func (l *lines) addReport(line *api.ExportedReport, grant auth.Grant, kept bool) error {
	if !kept {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "A report can only be imported with receipts=kept")
	}
	if err := grant.Index(""); err != nil {
		return err
	}
	if line.Experiment == "" || line.Reports[line.Metric] == nil {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "The report has no experiment, or none of its metric")
	}
	body, err := json.Marshal(struct { // as the job that made it kept it
		Metric  string                     `json:"metric"`
		Reports map[string]json.RawMessage `json:"reports"`
		Exposed map[string]json.RawMessage `json:"exposed"`
	}{line.Metric, line.Reports, line.Exposed})
	if err != nil {
		return err
	}
	l.reports = append(l.reports, config.KeptReport{Experiment: line.Experiment, Month: line.Month,
		Definition: line.Definition, Job: line.Job, AsOf: line.AsOf.Time, Body: string(body)})
	return nil
}
