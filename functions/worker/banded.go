package worker

import (
	"context"
	"errors"

	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
)

// bandsStarted is the answer to the task that follows a change of numeric bands: the
// re-enrichment, or nothing if the bands are applied already.
type bandsStarted struct {
	Reenrich string `json:"reenrich,omitempty"`
}

// banded starts the re-enrichment that gives logged events the app's numeric bands.
func (h handler) banded(ctx context.Context, request bands.Request, _ int) (bandsStarted, error) {
	j, err := h.Reenrich.StartBands(ctx, request.App, false, 0)
	if errors.Is(err, reenrich.ErrNoBands) {
		return bandsStarted{}, nil
	}
	return bandsStarted{j.ID}, gone(err)
}
