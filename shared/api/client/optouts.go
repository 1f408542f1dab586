package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// OptOut opts a user out of events of some types, or of all if the request has none: their
// past is deleted, and such events are dropped from now on. Requires a key with the permission
// deleteObject.
func (c Profiles) OptOut(ctx context.Context, user string, request api.OptOutRequest) (api.OptOut, error) {
	var answer api.OptOut
	err := c.call(ctx, always, http.MethodPut, optOutPath(user), request, &answer)
	return answer, err
}

// OptIn ends a user's opt-out: what they do from now on counts. Requires a key with the permission
// deleteObject.
func (c Profiles) OptIn(ctx context.Context, user string) (api.OptOut, error) {
	var answer api.OptOut
	err := c.call(ctx, always, http.MethodDelete, optOutPath(user), nil, &answer)
	return answer, err
}

// OptedOut returns which types of events a user is out of. Requires a key with the permission
// deleteObject.
func (c Profiles) OptedOut(ctx context.Context, user string) (api.OptOut, error) {
	var answer api.OptOut
	err := c.call(ctx, always, http.MethodGet, optOutPath(user), nil, &answer)
	return answer, err
}

func optOutPath(user string) string { return "/1/optouts/" + url.PathEscape(user) }
