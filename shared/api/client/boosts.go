package client

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/affinityengine/affinity/shared/api"
)

// Boost returns a user's profile as a part of the request to a search engine. Of a
// user whom the engine does not know it has an empty query. It sends the user in a
// header, so that the token is in no log of URLs. Requires a key with the permission
// recommendation.
func (c *Client) Boost(ctx context.Context, user string, q api.BoostQuery) (api.Boost, error) {
	query := url.Values{"engine": {q.Engine}}
	if q.Mode != "" {
		query.Set("mode", q.Mode)
	}
	if q.Impact != nil {
		query.Set("impact", strconv.Itoa(*q.Impact))
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if !q.HalfLife.IsZero() {
		query.Set("halfLife", q.HalfLife.String())
	}
	if q.Fields != nil {
		query.Set("fields", strings.Join(q.Fields, ","))
	}
	if q.FieldMap != nil {
		var entries []string
		for _, facet := range slices.Sorted(maps.Keys(q.FieldMap)) {
			entries = append(entries, facet+":"+q.FieldMap[facet])
		}
		query.Set("fieldMap", strings.Join(entries, ","))
	}
	if q.Consistency != "" {
		query.Set("consistency", q.Consistency)
	}
	var answer api.Boost
	err := c.call(context.WithValue(ctx, userKey{}, user), always, http.MethodGet, withQuery("/1/boosts", query),
		nil, &answer)
	return answer, err
}
