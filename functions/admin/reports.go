package admin

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/usage"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// auditLog answers with a page of the audit log.
func (h handler) auditLog(w http.ResponseWriter, r *http.Request, app string) error {
	query, user, err := auditQuery(r)
	if err != nil {
		return err
	}
	if user != "" {
		salt, err := h.Store.AuditLog.AuditSalt(r.Context(), app)
		if err != nil {
			return auditLogError(err)
		}
		query.User = auditlog.Hash(salt, user)
	}
	entries, next, err := auditlog.Read(r.Context(), h.Store.AuditLog, app, query)
	if err != nil {
		return auditLogError(err)
	}
	answer := api.AuditLog{Entries: make([]api.AuditLogEntry, len(entries)), Cursor: next}
	for i, e := range entries {
		answer.Entries[i] = api.AuditLogEntry{
			ID: e.ID, At: api.At(e.At), Actor: e.Actor, Action: string(e.Action), Subject: e.Subject, User: e.User,
			Detail: e.Detail, Outcome: string(e.Outcome), Trace: e.Trace,
		}
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

func auditLogError(err error) error { return fmt.Errorf("read the audit log: %w", err) }

// auditQuery returns what a request asks for, and the token of a user, if it asks
// for the entries about one.
func auditQuery(r *http.Request) (q auditlog.Query, user string, err error) {
	values := r.URL.Query()
	q = auditlog.Query{After: values.Get("cursor"), Action: auditlog.Action(values.Get("action"))}
	user = values.Get("userToken")
	if q.Limit, err = httpapi.CountOption(r, "limit", api.DefaultAuditEntries, api.MaxAuditEntries); err != nil {
		return q, "", err
	}
	switch {
	case values.Has("cursor") && !auditlog.ValidID(q.After):
		return q, "", httpapi.Errorf(http.StatusUnprocessableEntity,
			"cursor must be the cursor of another answer of this route")
	case values.Has("action") && !slices.Contains(auditlog.Actions, q.Action):
		return q, "", httpapi.Errorf(http.StatusUnprocessableEntity,
			"action %.50q does not exist: the description of this route lists all", q.Action)
	case values.Has("userToken") && !event.ValidUserToken(user):
		return q, "", httpapi.Errorf(http.StatusUnprocessableEntity, "userToken is not a user token")
	}
	return q, user, nil
}

// usage answers with what an app used by day.
func (h handler) usage(w http.ResponseWriter, r *http.Request, app string) error {
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
			Day: day.String(), Events: c.Events, RefusedEvents: c.Refused, RefusedLinks: c.RefusedLinks, Reads: c.Reads,
			Rows: c.Rows, Bytes: c.Bytes,
		})
	}
	answer.Total = api.UsageCounts{Events: total.Events, RefusedEvents: total.Refused, RefusedLinks: total.RefusedLinks,
		Reads: total.Reads, Rows: total.Rows, Bytes: total.Bytes}
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
		return from, to, httpapi.Errorf(http.StatusUnprocessableEntity,
			"from and to must not be more than %d days apart", api.MaxUsageDays)
	}
	return from, to, nil
}
