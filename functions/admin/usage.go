package admin

import (
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// usage answers with what an app used by day.
func (h handler) usage(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.AppID(r, auth.Usage)
	if err != nil {
		return err
	}
	from, to, err := usageDays(r, usage.DayOf(h.Now()))
	if err != nil {
		return err
	}
	counted, err := h.Store.Usage.Usage(r.Context(), app, from, to)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	dead, err := h.Store.Usage.DeadLetters(r.Context(), app)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	answer := api.Usage{From: from.String(), To: to.String(), DeadLetters: dead, Days: make([]api.UsageDay, 0, to-from+1)}
	var total usage.Counts
	for day := from; day <= to; day++ {
		c := counted[day]
		total.Add(c)
		answer.Days = append(answer.Days, api.UsageDay{
			Day: day.String(), Events: c.Events, RefusedEvents: c.Refused, Reads: c.Reads, Rows: c.Rows, Bytes: c.Bytes,
		})
	}
	answer.Total = api.UsageCounts{Events: total.Events, RefusedEvents: total.Refused, Reads: total.Reads, Rows: total.Rows, Bytes: total.Bytes}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// usageDays returns the days that a request asks for.
func usageDays(r *http.Request, today usage.Day) (from, to usage.Day, err error) {
	query := r.URL.Query()
	day := func(name string, absent usage.Day) (usage.Day, error) {
		if !query.Has(name) {
			return absent, nil
		}
		d, err := usage.ParseDay(query.Get(name))
		if err != nil {
			return d, httpapi.Errorf(http.StatusUnprocessableEntity, "%s must be a day like 2026-11-22", name)
		}
		return d, nil
	}
	if to, err = day("to", today); err != nil {
		return from, to, err
	}
	if from, err = day("from", to-api.DefaultUsageDays+1); err != nil {
		return from, to, err
	}
	switch {
	case from > to:
		return from, to, httpapi.Errorf(http.StatusUnprocessableEntity, "from must not be later than to")
	case to-from >= api.MaxUsageDays:
		return from, to, httpapi.Errorf(http.StatusUnprocessableEntity, "from and to must not be more than %d days apart", api.MaxUsageDays)
	}
	return from, to, nil
}
