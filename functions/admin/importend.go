package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// endImport starts the jobs that follow an import, or finds them, and answers how far they
// are. An import writes the log before it answers, so a client that has all answers knows that
// everything is written. Nothing depends on this request: the task of package afterimport
// starts the same jobs after a minute without an import.
func (h handler) endImport(w http.ResponseWriter, r *http.Request, app config.App) error {
	request, err := readRequest[api.ImportEndRequest](w, r, api.MaxAdminBody,
		"empty or an object with no other key than at, the time of an earlier answer")
	if err != nil {
		return err
	}
	last, err := h.Store.Crowd.LastImport(r.Context(), app.ID, "")
	if err != nil {
		return err
	}
	if request.At != nil {
		if request.At.After(last) || request.At.UnixMilli() <= 0 {
			return httpapi.Errorf(http.StatusUnprocessableEntity, "at must be that of an earlier answer")
		}
		last = request.At.Time
	}
	var answer api.ImportEnd
	if last.IsZero() {
		return httpapi.WriteJSON(w, http.StatusOK, answer)
	}
	at := api.At(last)
	answer.At = &at
	if err := h.followImport(r.Context(), app.ID, last, &answer); err != nil {
		return fmt.Errorf("end an import: %w", err)
	}
	return httpapi.WriteJSON(w, http.StatusOK, answer)
}

// followImport starts or finds the jobs that follow an import that came last at a time.
func (h handler) followImport(ctx context.Context, app string, last time.Time, answer *api.ImportEnd) error {
	j, builds := h.Crowd.StartImport(ctx, app, last)
	if j.ID != "" {
		shown := h.renderCrowd(ctx, j)
		answer.Crowd = &shown
	}
	j, folds := h.Recompute.StartImport(ctx, app, last)
	if j.ID != "" {
		shown := h.render(ctx, j)
		answer.Recompute = &shown
	}
	if errors.Is(builds, crowdbuild.ErrNoObjects) {
		builds = nil
	}
	if errors.Is(folds, recompute.ErrBusy) {
		answer.Waiting, folds = true, nil
	}
	if errors.Is(builds, crowdbuild.ErrBusy) {
		answer.Waiting, builds = true, nil
	}
	return errors.Join(folds, builds) // neither job waits for the other
}
