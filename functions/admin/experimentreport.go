package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// experimentReport answers with what an experiment of the app has shown by its last report, or by that of a month.
func (h handler) experimentReport(w http.ResponseWriter, r *http.Request, app string) error {
	q, name := r.URL.Query(), r.PathValue("name")
	month := q.Get("month")
	if month != "" {
		if _, err := time.Parse("2006-01", month); err != nil {
			return httpapi.Errorf(http.StatusUnprocessableEntity, "month must be a month like 2026-11")
		}
	}
	exposed := q.Get("population") == "exposed"
	if q.Has("population") && !exposed && q.Get("population") != "active" {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "population must be active or exposed")
	}
	kept, err := config.ReportsOf(h.Config).Kept(r.Context(), app, name, month)
	switch {
	case errors.Is(err, config.ErrNotFound) && month != "":
		return httpapi.Errorf(http.StatusNotFound, "No report of %q of %s: a night makes one some days after the month, "+
			"if the experiment ran in it", name, month)
	case errors.Is(err, config.ErrNotFound):
		return httpapi.Errorf(http.StatusNotFound, "No report of %q yet: POST /1/reports starts one, and so does each night "+
			"while it runs", name)
	case err != nil:
		return err
	}
	body, err := reportLine(kept)
	if err != nil {
		return err
	}
	if q.Has("metric") {
		body.Metric = q.Get("metric")
	}
	if exposed {
		body.Reports = body.Exposed
	}
	text, ok := body.Reports[body.Metric]
	if !ok {
		return httpapi.Errorf(http.StatusUnprocessableEntity, "metric must be clicks, conversions or revenue")
	}
	var answer api.ExperimentReport
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("decode the report of experiment %q: %w", name, err)
	}
	for option, day := range map[string]string{"from": answer.From, "to": answer.To} {
		if q.Has(option) && q.Get(option) != day {
			return httpapi.Errorf(http.StatusNotFound, "The last report of %q is of the days from %s to %s: "+
				"POST /1/reports starts one of others", name, answer.From, answer.To)
		}
	}
	answer.AsOf, answer.Job, answer.Definition = api.At(kept.AsOf), kept.Job, kept.Definition
	if answer.Months, err = config.ReportsOf(h.Config).Months(r.Context(), app, name); err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}
