package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/affinityengine/affinity/shared/api"
)

// Link links an anonymous token to a known user, and returns the links of the token. If they are linked it
// changes nothing. The error has the status 409 if the engine refuses the link. Requires a key with the permission
// admin.
func (c Profiles) Link(ctx context.Context, request api.LinkRequest) (api.Identity, error) {
	var answer api.Identity
	err := c.call(ctx, always, http.MethodPost, "/1/identities/link", request, &answer)
	return answer, err
}

// Unlink undoes a link: both profiles are what they would be without. The error has the status 404 if there was no
// link. Requires a key with the permission admin.
func (c Profiles) Unlink(ctx context.Context, token, known string) (api.Unlinked, error) {
	var answer api.Unlinked
	path := "/1/identities/" + url.PathEscape(token) + "/links/" + url.PathEscape(known)
	err := c.call(ctx, always, http.MethodDelete, path, nil, &answer)
	return answer, err
}

// Identity returns the links of a token. Requires a key with the permission admin.
func (c Profiles) Identity(ctx context.Context, token string) (api.Identity, error) {
	var answer api.Identity
	err := c.call(ctx, always, http.MethodGet, "/1/identities/"+url.PathEscape(token), nil, &answer)
	return answer, err
}

// Links returns a page of the links of the app. Requires a key with the permission admin.
func (c Profiles) Links(ctx context.Context, q api.LinksQuery) (api.Links, error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"day": q.Day, "strength": q.Strength, "by": q.By, "state": q.State, "key": q.Key,
		"cursor": q.Cursor,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	var answer api.Links
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/identities", query), nil, &answer)
	return answer, err
}

// RefusedLinks returns a page of the events that asked for a link and got none, the newest first, and counts all of
// them. reason "" is all reasons, cursor "" the first page. Requires a key with the permission admin.
func (c Profiles) RefusedLinks(ctx context.Context, reason, cursor string) (api.RefusedLinks, error) {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var answer api.RefusedLinks
	err := c.call(ctx, always, http.MethodGet, withQuery("/1/identities/refused", query), nil, &answer)
	return answer, err
}
