package worker

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/httpapi"
	"github.com/affinityengine/affinity/shared/imported"
	"github.com/affinityengine/affinity/shared/job/crowdbuild"
	"github.com/affinityengine/affinity/shared/store"
)

// imported starts a build of crowd statistics if the app's last import is long
// enough ago. Otherwise it enqueues the task that looks again.
func (h handler) imported(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	request, err := imported.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	last, err := h.Store.LastImport(r.Context(), request.App)
	if err != nil {
		return err
	}
	if last.IsZero() {
		return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": false})
	}
	if wait := last.Add(imported.Quiet).Sub(h.Now()); wait > 0 {
		task, err := request.Later(last, min(wait, imported.Quiet))
		if err != nil {
			return err
		}
		if err := h.Queue.Create(r.Context(), task); err != nil {
			return fmt.Errorf("wait for the end of an import: %w", err)
		}
		return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": false})
	}
	j, err := h.Crowd.StartImport(r.Context(), request.App, last)
	switch {
	case errors.Is(err, config.ErrNotFound):
		return h.drop(w, r, err)
	case errors.Is(err, crowdbuild.ErrNoObjects), errors.Is(err, store.ErrNoCrowdTable):
		return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": false})
	case err != nil:
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, map[string]any{"started": true, "job": j.ID})
}
