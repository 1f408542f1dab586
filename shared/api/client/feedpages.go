package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// Page returns a page of a feed in an order, api.OrderSuggested or api.OrderLatest. It
// sends the user in a header, so that the token is in no log of URLs. The key needs the
// permission recommendation, or for the order latest the permission search.
func (c Feeds) Page(ctx context.Context, name, order string, q api.FeedQuery) (api.FeedPage, error) {
	query := url.Values{"exclude": q.Exclude}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	if q.Placement != "" {
		query.Set("placement", q.Placement)
	}
	if q.Format != "" {
		query.Set("format", q.Format)
	}
	if q.User != "" {
		ctx = context.WithValue(ctx, userKey{}, q.User)
	}
	var answer api.FeedPage
	err := c.call(ctx, always, http.MethodGet,
		withQuery("/1/feeds/"+url.PathEscape(name)+"/"+url.PathEscape(order), query), nil, &answer)
	return answer, err
}
