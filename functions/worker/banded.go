package worker

import (
	"errors"
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// bandsStarted is the answer to the task that follows a change of numeric bands: the
// re-enrichment, or nothing if the bands are applied already.
type bandsStarted struct {
	Reenrich string `json:"reenrich,omitempty"`
}

// banded starts the re-enrichment that gives logged events the app's numeric bands.
func (h handler) banded(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	app, err := bands.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	j, err := h.Reenrich.StartBands(r.Context(), app, false, 0)
	switch {
	case errors.Is(err, reenrich.ErrNoBands):
		return httpapi.WriteJSON(w, http.StatusOK, bandsStarted{})
	case errors.Is(err, config.ErrNotFound):
		return h.drop(w, r, err)
	case err != nil:
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, bandsStarted{j.ID})
}
