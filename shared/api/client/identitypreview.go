package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/affinityengine/affinity/shared/api"
)

const identityPreviewPath = "/1/identities/preview"

// StartIdentityPreview asks which links the events of the last days would have made. If a preview is under way,
// the error is an *api.Error with status 409, so the request is never repeated. For this and the methods below the
// key needs the permission admin.
func (c Jobs) StartIdentityPreview(ctx context.Context,
	request api.IdentityPreviewRequest) (api.IdentityPreview, error) {
	var answer api.IdentityPreview
	err := c.call(ctx, never, http.MethodPost, identityPreviewPath, request, &answer)
	return answer, err
}

// IdentityPreview returns a preview by its ID, with the links once it is done.
func (c Jobs) IdentityPreview(ctx context.Context, id string) (api.IdentityPreview, error) {
	var answer api.IdentityPreview
	err := c.call(ctx, always, http.MethodGet, identityPreviewPath+"/"+url.PathEscape(id), nil, &answer)
	return answer, err
}

// IdentityPreviews returns the latest previews without their links, the newest first.
func (c Jobs) IdentityPreviews(ctx context.Context) (api.IdentityPreviews, error) {
	var answer api.IdentityPreviews
	err := c.call(ctx, always, http.MethodGet, identityPreviewPath, nil, &answer)
	return answer, err
}

// CancelIdentityPreview cancels a preview. If it has ended, the error is an *api.Error with status 409, so the
// request is never repeated.
func (c Jobs) CancelIdentityPreview(ctx context.Context, id string) (api.IdentityPreview, error) {
	var answer api.IdentityPreview
	err := c.call(ctx, never, http.MethodPost, identityPreviewPath+"/"+url.PathEscape(id)+"/cancel", nil, &answer)
	return answer, err
}
