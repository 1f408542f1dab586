package admin

import (
	"context"
	"log/slog"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/job"
)

// place returns the place of an unfinished job in its queue. Without it, as while a
// new deployment's index is built, an answer says everything else.
func (h handler) place(ctx context.Context, j job.Job) api.Place {
	if !j.Due(h.Now()) {
		return api.Place{}
	}
	before, err := h.Before(ctx, j)
	if err != nil {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "place of a job is unknown", slog.String("app", j.App), slog.String("job", j.ID), slog.Any("error", err))
		return api.Place{}
	}
	return api.Place{JobsBefore: &before}
}

// wait returns the place of an unfinished job and the estimate of its end, for jobs
// that have no work but to visit users.
func (h handler) wait(ctx context.Context, j job.Job) api.Wait {
	w := api.Wait{Place: h.place(ctx, j)}
	if end := j.EndEstimate(h.Now()); !end.IsZero() {
		at := api.At(end)
		w.EstimatedEndAt = &at
	}
	return w
}
