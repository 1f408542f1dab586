package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
)

// importEnded names the jobs that the task after an import started or found. It omits
// jobs that are not due yet.
type importEnded struct {
	Started   bool   `json:"started"`
	Recompute string `json:"recompute,omitempty"`
	Crowd     string `json:"crowd,omitempty"`
}

// imported starts a recompute that folds, and a build of crowd statistics, if the
// app's last import is long enough ago. Otherwise it enqueues the task that looks
// again.
func (h handler) imported(ctx context.Context, request afterimport.Request, _ int) (answer importEnded, err error) {
	last, err := h.Store.Crowd.LastImport(ctx, request.App)
	if err != nil || last.IsZero() {
		return answer, err
	}
	if wait := last.Add(afterimport.Quiet).Sub(h.Now()); wait > 0 {
		return answer, h.lookLater(ctx, request, last, min(wait, afterimport.Quiet))
	}
	var failed [2]error // neither job waits for the other
	answer.Recompute, failed[0] = h.foldImported(ctx, request, last)
	answer.Crowd, failed[1] = h.buildImported(ctx, request.App, last)
	answer.Started = answer.Recompute != "" || answer.Crowd != ""
	return answer, gone(errors.Join(failed[:]...))
}

// foldImported starts the recompute that folds what an app's last import brought. While
// another recompute of the app is under way it starts none, and looks again later.
func (h handler) foldImported(ctx context.Context, request afterimport.Request, last time.Time) (id string, err error) {
	j, err := h.Recompute.StartImport(ctx, request.App, last)
	switch {
	case !errors.Is(err, recompute.ErrBusy):
		return j.ID, err
	case request.Exhausted(last):
		h.Log.LogAttrs(ctx, slog.LevelWarn, "an import is left to the nightly round, another recompute does not end",
			slog.String("app", request.App))
		return "", nil
	}
	return "", h.lookLater(ctx, request, last, afterimport.Quiet)
}

// buildImported starts the build of crowd statistics that follows an app's last import,
// if there is anything to build.
func (h handler) buildImported(ctx context.Context, app string, last time.Time) (id string, err error) {
	j, err := h.Crowd.StartImport(ctx, app, last)
	if errors.Is(err, crowdbuild.ErrNoObjects) {
		return "", nil
	}
	return j.ID, err
}

func (h handler) lookLater(ctx context.Context, request afterimport.Request, last time.Time, wait time.Duration) error {
	task, err := request.Later(last, wait)
	if err != nil {
		return err
	}
	if err := h.Queue.Create(ctx, task); err != nil {
		return fmt.Errorf("wait for the end of an import: %w", err)
	}
	return nil
}
