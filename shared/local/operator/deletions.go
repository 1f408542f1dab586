package operator

import (
	"context"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/kinds/deletion"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

const (
	deletePath   = "/local/apps/delete"
	deletionPath = "/local/apps/deletion"
)

// Deletions deletes apps.
type Deletions interface {
	Delete(ctx context.Context, app string, again bool) (deletion.Status, error)
	Status(ctx context.Context, app string) (deletion.Status, error)
}

// handleDeletions adds the operations on deletions to a router.
func handleDeletions(rt *httpapi.Router, d Deletions) {
	handle(rt, deletePath, func(ctx context.Context, r request) (any, error) {
		if !config.ValidAppID(r.App.ID) {
			return nil, config.ErrNotFound
		}
		return d.Delete(ctx, r.App.ID, r.Again)
	})
	handle(rt, deletionPath, func(ctx context.Context, r request) (any, error) {
		if !config.ValidAppID(r.App.ID) {
			return nil, config.ErrNotFound
		}
		return d.Status(ctx, r.App.ID)
	})
}

// Delete ends an app and deletes it, or resumes that; see deletion.Runner.
func (c *Client) Delete(ctx context.Context, appID string, again bool) (deletion.Status, error) {
	return post[deletion.Status](ctx, c, deletePath, request{App: config.App{ID: appID}, Again: again})
}

// Status returns where the deletion of an app is.
func (c *Client) Status(ctx context.Context, appID string) (deletion.Status, error) {
	return post[deletion.Status](ctx, c, deletionPath, request{App: config.App{ID: appID}})
}
