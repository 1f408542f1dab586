package worker

import (
	"context"
	"errors"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
)

// refresh stores the profile of a user at the end of a write window. A task whose app is
// gone has no effect.
func (h handler) refresh(ctx context.Context, request refresh.Request, _ int) (map[string]bool, error) {
	app, err := h.CachedConfig.App(ctx, request.App)
	if errors.Is(err, config.ErrNotFound) {
		return map[string]bool{"refreshed": false}, nil
	}
	if err != nil {
		return nil, err
	}
	done, err := h.Profiles.RefreshMarked(ctx, app, request.User)
	return map[string]bool{"refreshed": done}, err
}
