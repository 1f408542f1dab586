package profiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// optOut sets the types of events that a user is out of.
func (h handler) optOut(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	types, err := httpapi.Decode(w, r, api.MaxAdminBody, decodeOptOut)
	if err != nil {
		return err
	}
	c.Action, c.Detail = auditlog.OptOutSet, types.String()
	return h.changeOptOut(w, r, c, func(ctx context.Context) (time.Time, error) {
		return h.Profiles.OptOut(ctx, c.App, c.User, types.List()...)
	})
}

// optIn ends an opt-out.
func (h handler) optIn(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	c.Action = auditlog.OptOutRemove
	return h.changeOptOut(w, r, c, func(ctx context.Context) (time.Time, error) {
		return h.Profiles.OptIn(ctx, c.App, c.User)
	})
}

// changeOptOut makes and records a change. Like a deletion it enqueues a purge, and the
// client may repeat the request after an error.
func (h handler) changeOptOut(w http.ResponseWriter, r *http.Request, c auditlog.Change,
	do func(context.Context) (time.Time, error)) error {
	err := auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		until, err := do(r.Context())
		if err == nil && !until.IsZero() {
			err = h.enqueuePurge(r.Context(), c.App, c.User, until)
		}
		return end, err
	})
	if err != nil {
		return fmt.Errorf("change opt-out: %w", err)
	}
	return h.writeOptOut(w, r, c.App, c.User)
}

func (h handler) getOptOut(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	return h.writeOptOut(w, r, c.App, c.User)
}

// writeOptOut answers with the user's opt-out as it is now: that of this request, or of
// another one that came after.
func (h handler) writeOptOut(w http.ResponseWriter, r *http.Request, app, user string) error {
	types, until, err := h.Profiles.OptedOut(r.Context(), app, user)
	if err != nil {
		return fmt.Errorf("read opt-out: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, renderOptOut(user, types, until))
}

func renderOptOut(user string, types event.Types, until time.Time) api.OptOut {
	answer := api.OptOut{UserToken: user, OptedOut: types != 0, EventTypes: types.List()}
	if !until.IsZero() {
		at := api.At(until)
		answer.DeletedUntil = &at
	}
	return answer
}

// decodeOptOut reads {"eventTypes":[...]}, or nothing. An absent or empty list is all types.
func decodeOptOut(body []byte) (event.Types, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return event.AllTypes, nil
	}
	var in *api.OptOutRequest
	switch err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); {
	case errors.Is(err, json.ErrUnknownName):
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "Unknown key: the body takes eventTypes")
	case err != nil || in == nil:
		return 0, httpapi.Errorf(http.StatusBadRequest, `Bad Request: want {"eventTypes":["view"]} or no body`)
	}
	if len(in.EventTypes) == 0 {
		return event.AllTypes, nil
	}
	types, ok := event.TypesOf(in.EventTypes...)
	if !ok {
		return 0, httpapi.Errorf(http.StatusUnprocessableEntity, "eventTypes may hold view, click and conversion")
	}
	return types, nil
}
