package worker

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// refresh stores the profile of a user at the end of a write window. A task whose app is
// gone has no effect.
func (h handler) refresh(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	request, err := refresh.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	app, err := h.CachedConfig.App(r.Context(), request.App)
	if errors.Is(err, config.ErrNotFound) {
		return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"refreshed": false})
	}
	if err != nil {
		return fmt.Errorf("refresh user: %w", err)
	}
	done, err := h.Profiles.RefreshMarked(r.Context(), app, request.User)
	if err != nil {
		return fmt.Errorf("refresh user: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"refreshed": done})
}
