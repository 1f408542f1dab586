package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

// Usage returns what the app used from a day to a day, both like 2026-11-22 and
// included. Empty: the last 30 days, or those up to to. Requires a key with the permission
// usage.
func (c *Client) Usage(ctx context.Context, from, to string) (api.Usage, error) {
	query := url.Values{}
	if from != "" {
		query.Set("from", from)
	}
	if to != "" {
		query.Set("to", to)
	}
	path := "/1/usage"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var answer api.Usage
	err := c.call(ctx, always, http.MethodGet, path, nil, &answer)
	return answer, err
}
