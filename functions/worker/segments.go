package worker

import (
	"context"

	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
)

// delta adds the users who have changed to the parts of an app's segments.
func (h handler) delta(ctx context.Context, request segmentbuild.Request, _ int) (any, error) {
	outcome, err := h.Segments.Delta(ctx, request)
	return outcome, gone(err)
}

// clean drops the parts of an app's segments that nothing names any more.
func (h handler) clean(ctx context.Context, request segmentbuild.Request, _ int) (map[string]bool, error) {
	return map[string]bool{"cleaned": true}, gone(h.Segments.Clean(ctx, request))
}
