package worker

import (
	"context"
	"errors"
	"net/http"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// delta adds the users who have changed to the parts of an app's segments.
func (h handler) delta(w http.ResponseWriter, r *http.Request) error {
	return beside(h, w, r, h.Segments.Delta)
}

// clean drops the parts of an app's segments that nothing names any more.
func (h handler) clean(w http.ResponseWriter, r *http.Request) error {
	return beside(h, w, r, func(ctx context.Context, request segmentbuild.Request) (map[string]bool, error) {
		return map[string]bool{"cleaned": true}, h.Segments.Clean(ctx, request)
	})
}

// beside runs a task of segments that belongs to no job.
func beside[T any](h handler, w http.ResponseWriter, r *http.Request, do func(context.Context, segmentbuild.Request) (T, error)) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	request, err := segmentbuild.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	outcome, err := do(r.Context(), request)
	if errors.Is(err, config.ErrNotFound) {
		return h.drop(w, r, err)
	}
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, http.StatusOK, outcome)
}
