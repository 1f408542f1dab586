package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

func feedPath(name string) string { return "/1/feeds/" + url.PathEscape(name) }

// Set stores the definition of a feed, and starts the job that lists by date the
// objects that are there already. Requires a key with the permission settings, as for all
// definitions of feeds.
func (c Feeds) Set(ctx context.Context, name string, request api.FeedRequest) (api.Feed, error) {
	var answer api.Feed
	err := c.call(ctx, always, http.MethodPut, feedPath(name), request, &answer)
	return answer, err
}

// Get returns the definition of a feed, and how far its objects are listed by date. If
// it does not exist, the error is an *api.Error with status 404.
func (c Feeds) Get(ctx context.Context, name string) (api.Feed, error) {
	var answer api.Feed
	err := c.call(ctx, always, http.MethodGet, feedPath(name), nil, &answer)
	return answer, err
}

// List returns the definitions of an app's feeds.
func (c Feeds) List(ctx context.Context) (api.Feeds, error) {
	var answer api.Feeds
	err := c.call(ctx, always, http.MethodGet, "/1/feeds", nil, &answer)
	return answer, err
}

// Delete removes the definition of a feed. If it does not exist, the error is an
// *api.Error with status 404, also after a repeated request.
func (c Feeds) Delete(ctx context.Context, name string) (api.DeletedFeed, error) {
	var answer api.DeletedFeed
	err := c.call(ctx, always, http.MethodDelete, feedPath(name), nil, &answer)
	return answer, err
}
