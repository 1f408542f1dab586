package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// AppSettings returns the app as its operator has set it up, and a page of its keys. The
// key needs the permission admin.
func (c *Client) AppSettings(ctx context.Context, q api.AppSettingsQuery) (api.AppSettings, error) {
	query := url.Values{}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	path := "/1/app"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var answer api.AppSettings
	err := c.call(ctx, always, http.MethodGet, path, nil, &answer)
	return answer, err
}
