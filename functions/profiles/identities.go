package profiles

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/event"
	"github.com/affinityengine/affinity/shared/profile"
	"github.com/affinityengine/affinity/shared/profile/links"
	"github.com/affinityengine/affinity/shared/profile/view"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// errIdentityOff says how links are switched on.
var errIdentityOff = httpapi.Errorf(http.StatusConflict,
	"Tokens are not linked for this app. Its operator switches links on: affinity app identity APP --mode collect")

// identity answers with the links of a token.
func (h handler) identity(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	app, err := h.CachedConfig.App(r.Context(), c.App)
	if err != nil {
		return err
	}
	return h.writeIdentity(w, r, app, c.User, true)
}

// link links two tokens because an admin says so.
func (h handler) link(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	in, err := httpapi.Decode(w, r, api.MaxAdminBody, decodeLink)
	if err != nil {
		return err
	}
	app, err := h.linking(r.Context(), c.App)
	if err != nil {
		return err
	}
	c.Action, c.User, c.Detail = auditlog.IdentityLink, in.UserToken, "to "+in.AuthenticatedUserToken
	err = auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		err = profile.IdentitiesOf(h.Profiles).Link(r.Context(), app, in.UserToken, in.AuthenticatedUserToken, in.Reason)
		if refused, ok := errors.AsType[profile.LinkRefused](err); ok {
			err = httpapi.Errorf(http.StatusConflict, "The tokens are not linked: %s", refused.Reason.Words())
		}
		return end, err
	})
	if err != nil {
		return fmt.Errorf("link: %w", err)
	}
	return h.writeIdentity(w, r, app, in.UserToken, false)
}

// unlink undoes a link.
func (h handler) unlink(w http.ResponseWriter, r *http.Request, c auditlog.Change) error {
	known := r.PathValue("authenticatedUserToken")
	app, err := h.linking(r.Context(), c.App)
	if err != nil {
		return err
	}
	var until time.Time
	c.Action, c.Detail = auditlog.IdentityUnlink, "from "+known
	err = auditlog.New(h.AuditLog()).Do(r.Context(), c, func() (end auditlog.End, err error) {
		until, err = profile.IdentitiesOf(h.Profiles).Unlink(r.Context(), app, c.User, known)
		if errors.Is(err, profile.ErrNotLinked) {
			err = httpapi.Errorf(http.StatusNotFound, "The tokens are not linked")
		}
		return end, err
	})
	if err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, api.Unlinked{UnlinkedUntil: api.At(until)})
}

// linking returns the app if it links tokens.
func (h handler) linking(ctx context.Context, appID string) (config.App, error) {
	app, err := h.CachedConfig.App(ctx, appID)
	if err == nil && !app.Identity.On() {
		err = errIdentityOff
	}
	return app, err
}

// tenantChange returns the app and the name of the key of a request whose body names the user.
func (h handler) tenantChange(r *http.Request, anyOf ...string) (auditlog.Change, error) {
	app, key, err := h.Auth.TenantKey(r, anyOf...)
	return auditlog.Change{App: app.ID, Actor: key}, err
}

// writeIdentity answers with the links of a token, counted or not: a script that links all users need not
// wait for that.
func (h handler) writeIdentity(w http.ResponseWriter, r *http.Request, app config.App, token string,
	counted bool) error {
	identities := profile.IdentitiesOf(h.Profiles)
	person, err := identities.Of(r.Context(), app, token)
	if err != nil {
		return fmt.Errorf("read links: %w", err)
	}
	answer := api.Identity{UserToken: token, Role: person.Role.String(), Links: make([]api.Link, len(person.Links))}
	for i, l := range person.Links {
		answer.Links[i] = view.Link(l)
		if !counted {
			continue
		}
		n, more, err := identities.CountEvents(r.Context(), app, l, api.MaxLinkEvents)
		if err != nil {
			return fmt.Errorf("count the events of a link: %w", err)
		}
		answer.Links[i].Events, answer.Links[i].MoreEvents = &n, more
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// decodeLink reads a LinkRequest.
func decodeLink(body []byte) (in api.LinkRequest, err error) {
	switch err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); {
	case errors.Is(err, json.ErrUnknownName):
		return in, httpapi.Errorf(http.StatusUnprocessableEntity,
			"Unknown key: the body takes userToken, authenticatedUserToken and reason")
	case err != nil:
		return in, httpapi.Errorf(http.StatusBadRequest,
			`Bad Request: want {"userToken":"anonymous-1","authenticatedUserToken":"ann","reason":"asked by mail"}`)
	}
	for _, token := range []string{in.UserToken, in.AuthenticatedUserToken} {
		if !event.ValidUserToken(token) {
			return in, httpapi.Errorf(http.StatusUnprocessableEntity, "userToken and authenticatedUserToken must be there, "+
				"of 1 to 129 letters, digits and =+/_-")
		}
		if links.NamesNobody(token) {
			return in, httpapi.Errorf(http.StatusUnprocessableEntity, "%q stands for no user, and is never linked", token)
		}
	}
	if in.UserToken == in.AuthenticatedUserToken {
		return in, httpapi.Errorf(http.StatusUnprocessableEntity, "userToken and authenticatedUserToken are equal")
	}
	if len(in.Reason) > api.MaxLinkReason {
		return in, httpapi.Errorf(http.StatusUnprocessableEntity, "reason may have %d bytes", api.MaxLinkReason)
	}
	return in, nil
}
