package httpapi

import (
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/auth"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/event"
)

// Tenant is the app that a request's key belongs to, if the key holds one of the
// ACLs. The app never comes from a body.
func Tenant(a *auth.Authenticator, r *http.Request, anyOf ...string) (config.App, error) {
	appID, key := auth.Credentials(r.Header.Get, r.URL.Query())
	app, err := a.AppAt(r.Context(), r.Host, appID, key, anyOf...)
	if err != nil {
		return config.App{}, fmt.Errorf("authenticate: %w", err)
	}
	return app, nil
}

// UserToken is the token of the request's path, checked before it touches a key.
func UserToken(r *http.Request) (string, error) {
	token := r.PathValue("userToken")
	if !event.ValidUserToken(token) {
		return "", Errorf(http.StatusUnprocessableEntity, "UserToken must contain only alphanumeric, equal, plus, slash, "+
			"hyphen, or underscore characters, and be between 1 and 129 characters long")
	}
	return token, nil
}
