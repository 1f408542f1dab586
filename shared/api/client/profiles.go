package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// Get returns the profile of a user. If the user has no event within the
// retention, the error is an *api.Error with status 404. The key needs the
// permission recommendation.
func (c Profiles) Get(ctx context.Context, user string, q api.ProfileQuery) (api.Profile, error) {
	query := url.Values{}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.HalfLife != "" {
		query.Set("halfLife", q.HalfLife)
	}
	if q.Consistency != "" {
		query.Set("consistency", q.Consistency)
	}
	if q.Segments {
		query.Set("segments", "true")
	}
	if q.Surface != "" {
		query.Set("surface", q.Surface)
	}
	if q.Holdout != "" {
		query.Set("holdout", q.Holdout)
	}
	if !q.At.IsZero() {
		query.Set("at", strconv.FormatInt(q.At.UnixMilli(), 10))
	}
	if q.StrategyVersion != 0 {
		query.Set("strategyVersion", strconv.FormatInt(q.StrategyVersion, 10))
	}
	var answer api.Profile
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/profiles/"+url.PathEscape(user), query), nil, &answer)
	return answer, err
}

// List returns the profiles of many users in one request. The key needs the
// permission recommendation.
func (c Profiles) List(ctx context.Context, request api.ProfilesRequest) (api.Profiles, error) {
	var answer api.Profiles
	err := c.call(ctx, always, http.MethodPost, "/1/profiles/batch", request, &answer)
	return answer, err
}

// Personalization returns the profile of a user in the form of Algolia's
// Personalization API. Requires a key with the permission recommendation.
func (c Profiles) Personalization(ctx context.Context, user string) (api.PersonalizationProfile, error) {
	var answer api.PersonalizationProfile
	err := c.call(ctx, always, http.MethodGet, "/1/profiles/personalization/"+url.PathEscape(user), nil, &answer)
	return answer, err
}

// Users returns a page of the users who have an event within the retention. The key needs
// the permission admin.
func (c Profiles) Users(ctx context.Context, q api.UsersQuery) (api.Users, error) {
	query := url.Values{}
	if q.Prefix != "" {
		query.Set("prefix", q.Prefix)
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Cursor != "" {
		query.Set("cursor", q.Cursor)
	}
	var answer api.Users
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/usertokens", query), nil, &answer)
	return answer, err
}

// RecentUsers returns users of the sample of recent events, those of the newest event
// first; limit 0: api.DefaultRecentUsers. Requires a key with the permission admin.
func (c Profiles) RecentUsers(ctx context.Context, limit int) (api.RecentUsers, error) {
	query := url.Values{}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var answer api.RecentUsers
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/usertokens/recent", query), nil, &answer)
	return answer, err
}

// Delete deletes a user: their events until now no longer count. The key
// needs the permission recommendation or deleteObject.
func (c Profiles) Delete(ctx context.Context, user string) (api.DeletedUser, error) {
	var answer api.DeletedUser
	err := c.call(ctx, always, http.MethodDelete, "/1/profiles/"+url.PathEscape(user), nil, &answer)
	return answer, err
}

// DeleteToken does what DeleteProfile does, by the route of Algolia's
// Insights API. Requires a key with the permission deleteObject.
func (c Profiles) DeleteToken(ctx context.Context, user string) error {
	return c.call(ctx, always, http.MethodDelete, "/1/usertokens/"+url.PathEscape(user), nil, nil)
}

// Explain says why a profile is as it is, or empty. Requires a key with the permission
// recommendation.
func (c Profiles) Explain(ctx context.Context, user string, q api.ExplainQuery) (api.Explanation, error) {
	query := url.Values{}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Facet != "" || q.Value != "" {
		query.Set("facet", q.Facet)
		query.Set("value", q.Value)
	}
	var answer api.Explanation
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/explain/"+url.PathEscape(user), query), nil, &answer)
	return answer, err
}

func withQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
