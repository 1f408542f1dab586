package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

func feedPath(name string) string { return "/1/feeds/" + url.PathEscape(name) }

// SetFeed stores the definition of a feed, and starts the job that lists by date the
// objects that are there already. Requires a key with the permission settings, as for all
// definitions of feeds.
func (c *Client) SetFeed(ctx context.Context, name string, request api.FeedRequest) (api.Feed, error) {
	var answer api.Feed
	err := c.call(ctx, always, http.MethodPut, feedPath(name), request, &answer)
	return answer, err
}

// Feed returns the definition of a feed, and how far its objects are listed by date. If
// it does not exist, the error is an *api.Error with status 404.
func (c *Client) Feed(ctx context.Context, name string) (api.Feed, error) {
	var answer api.Feed
	err := c.call(ctx, always, http.MethodGet, feedPath(name), nil, &answer)
	return answer, err
}

// Feeds returns the definitions of an app's feeds.
func (c *Client) Feeds(ctx context.Context) (api.Feeds, error) {
	var answer api.Feeds
	err := c.call(ctx, always, http.MethodGet, "/1/feeds", nil, &answer)
	return answer, err
}

// DeleteFeed removes the definition of a feed. If it does not exist, the error is an
// *api.Error with status 404, also after a repeated request.
func (c *Client) DeleteFeed(ctx context.Context, name string) (api.DeletedFeed, error) {
	var answer api.DeletedFeed
	err := c.call(ctx, always, http.MethodDelete, feedPath(name), nil, &answer)
	return answer, err
}
