package profiles

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/tasks/purge"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/score/consent"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// withdrawnWords tells a client what a withdrawal reaches later.
const withdrawnWords = "Answers leave out at once what counts for withdrawn purposes alone. Statistics and exported " +
	"files follow at their next build."

// consenting is changedUser for routes that also take a secured key of the user.
func (h handler) consenting(r *http.Request, anyOf ...string) (auditlog.Change, error) {
	app, grant, err := h.Auth.TenantUserGrant(r, anyOf...)
	if err != nil {
		return auditlog.Change{}, err
	}
	user, err := userToken(r)
	if err == nil {
		err = grant.User(user)
	}
	if err == nil && grant.OwnUser() == "" {
		err = grant.Index("") // a change is about all indexes
	}
	return auditlog.Change{App: app.ID, Actor: grant.Key, User: user}, err
}

// purposeful returns an app that has purposes. It reads the stored one: by an older setting a change would drop what
// the user has said of newer purposes.
func (h handler) purposeful(ctx context.Context, appID string) (config.App, error) {
	app, err := h.Config.App(ctx, appID)
	if err == nil && !app.Purposes.On() {
		err = httpapi.Errorf(http.StatusUnprocessableEntity, "app %s has no purposes: affinity app purposes", appID)
	}
	return app, err
}

func (h handler) getConsents(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	app, err := h.purposeful(r.Context(), c.App)
	if err != nil {
		return err
	}
	answer, err := h.consentsOf(r.Context(), app, c.User)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// setConsents grants some purposes for a user, and withdraws some.
func (h handler) setConsents(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	app, err := h.purposeful(r.Context(), c.App)
	if err != nil {
		return err
	}
	grants, err := httpapi.Decode(w, r, api.MaxAdminBody, func(body []byte) (map[string]bool, error) {
		return decodeConsents(app, body)
	})
	if err != nil {
		return err
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(grants)) {
		said = append(said, name+map[bool]string{true: " granted", false: " withdrawn"}[grants[name]])
	}
	c.Action, c.Detail = auditlog.ConsentSet, strings.Join(said, ", ")
	return h.changeConsents(w, r, app, c, func(ctx context.Context) (profile.Consented, error) {
		return profile.ConsentsOf(h.Profiles).Set(ctx, app, c.User, grants)
	})
}

// forgetConsents takes back what a user has said.
func (h handler) forgetConsents(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	app, err := h.purposeful(r.Context(), c.App)
	if err != nil {
		return err
	}
	c.Action = auditlog.ConsentForget
	return h.changeConsents(w, r, app, c, func(ctx context.Context) (profile.Consented, error) {
		return profile.ConsentsOf(h.Profiles).Forget(ctx, app, c.User)
	})
}

// changeConsents makes and records a change. The client may repeat the request after an error: a change that finds
// itself made enqueues the purge again.
func (h handler) changeConsents(w http.ResponseWriter, r *http.Request, app config.App, c auditlog.Change,
	do func(context.Context) (profile.Consented, error)) error {
	changed := false
	err := auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		said, err := do(r.Context())
		if err != nil || !said.Changed {
			return end, err
		}
		changed = true
		request := purge.Request{App: app.ID, User: c.User, DeletedUntil: h.Now().UnixMilli(), Withdrawn: true,
			Exported: said.Exported}
		return end, purge.Enqueue(r.Context(), h.Queue, profile.ResidentsOf(h.Profiles), request)
	})
	if err != nil {
		return fmt.Errorf("change consents: %w", err)
	}
	answer, err := h.consentsOf(r.Context(), app, c.User)
	if err != nil {
		return err
	}
	withdrawn := func(p api.UserPurpose) bool { return !p.Granted && p.Since != nil }
	if changed && slices.ContainsFunc(answer.Purposes, withdrawn) {
		answer.Words = withdrawnWords
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// consentsOf reads them as they are now: those of this request, or of another one that came after.
func (h handler) consentsOf(ctx context.Context, app config.App, user string) (api.Consents, error) {
	said, err := profile.ConsentsOf(h.Profiles).Read(ctx, app, user)
	if err != nil {
		return api.Consents{}, fmt.Errorf("read consents: %w", err)
	}
	answer := api.Consents{UserToken: user, Purposes: view.Consents(said), Surfaces: map[string]string{}}
	for on, use := range said.Uses {
		answer.Surfaces[string(on)] = use.String()
	}
	return answer, nil
}

// decodeConsents reads {"ads":false} about the purposes of an app.
func decodeConsents(app config.App, body []byte) (map[string]bool, error) {
	var in map[string]jsontext.Value
	if err := json.Unmarshal(body, &in); err != nil || len(in) == 0 {
		return nil, httpapi.Errorf(http.StatusBadRequest,
			`Bad Request: want {"PURPOSE":true} or false, of one purpose or more`)
	}
	grants := make(map[string]bool, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.ContainsFunc(app.Purposes.Purposes, func(p consent.Purpose) bool { return p.Name == name }) {
			return nil, httpapi.Errorf(http.StatusUnprocessableEntity, "app %s has no purpose %.100q: its purposes are %s",
				app.ID, name, names(app.Purposes.Purposes))
		}
		if kind := in[name].Kind(); kind != 't' && kind != 'f' {
			return nil, httpapi.Errorf(http.StatusUnprocessableEntity, "%s must be true, granted, or false, withdrawn", name)
		}
		grants[name] = in[name].Kind() == 't'
	}
	return grants, nil
}

func names(purposes []consent.Purpose) string {
	var all []string
	for _, p := range purposes {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}
