package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// Consents returns which purposes a user grants. Requires a key with the permission deleteObject, or a secured key of
// the user.
func (c Profiles) Consents(ctx context.Context, user string) (api.Consents, error) {
	var answer api.Consents
	err := c.call(ctx, always, http.MethodGet, consentsPath(user), nil, &answer)
	return answer, err
}

// SetConsents grants the purposes of grants whose value is true for a user, and withdraws the others. Purposes that
// grants does not name stay as they are. Requires a key with the permission deleteObject, or a secured key of the user.
func (c Profiles) SetConsents(ctx context.Context, user string, grants map[string]bool) (api.Consents, error) {
	var answer api.Consents
	err := c.call(ctx, always, http.MethodPut, consentsPath(user), grants, &answer)
	return answer, err
}

// ForgetConsents takes back what a user has said, so that the defaults of the purposes hold. Requires a key with the
// permission deleteObject, or a secured key of the user.
func (c Profiles) ForgetConsents(ctx context.Context, user string) (api.Consents, error) {
	var answer api.Consents
	err := c.call(ctx, always, http.MethodDelete, consentsPath(user), nil, &answer)
	return answer, err
}

func consentsPath(user string) string { return "/1/consents/" + url.PathEscape(user) }
