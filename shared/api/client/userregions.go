package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// Region returns the region in which a user lives. Requires a key with the permission admin.
func (c Profiles) Region(ctx context.Context, user string) (api.UserRegion, error) {
	var answer api.UserRegion
	err := c.call(ctx, always, http.MethodGet, userRegionPath(user), nil, &answer)
	return answer, err
}

// SetRegion moves a user to another region. If MovingTo is set, they arrive later. Requires a key with the permission
// admin.
func (c Profiles) SetRegion(ctx context.Context, user, region string) (api.UserRegion, error) {
	var answer api.UserRegion
	err := c.call(ctx, always, http.MethodPut, userRegionPath(user), api.UserRegionRequest{Region: region}, &answer)
	return answer, err
}

func userRegionPath(user string) string { return "/1/users/" + url.PathEscape(user) + "/region" }
