package admin

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/auth"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// auditLog answers with a page of the audit log.
func (h handler) auditLog(w http.ResponseWriter, r *http.Request) error {
	app, err := h.Auth.AppID(r, auth.Admin)
	if err != nil {
		return err
	}
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
	entries, next, err := h.Store.AuditLog.AuditLog(r.Context(), app, query)
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
		return q, "", httpapi.Errorf(http.StatusUnprocessableEntity, "cursor must be the cursor of another answer of this route")
	case values.Has("action") && !slices.Contains(auditlog.Actions, q.Action):
		return q, "", httpapi.Errorf(http.StatusUnprocessableEntity, "action %.50q does not exist: the description of this route lists all", q.Action)
	case values.Has("userToken") && !event.ValidUserToken(user):
		return q, "", httpapi.Errorf(http.StatusUnprocessableEntity, "userToken is not a user token")
	}
	return q, user, nil
}
