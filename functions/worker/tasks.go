package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/job/kinds/crowdbuild"
	"github.com/affinityengine/affinity/shared/job/kinds/recompute"
	"github.com/affinityengine/affinity/shared/job/kinds/reenrich"
	"github.com/affinityengine/affinity/shared/job/kinds/segmentbuild"
	"github.com/affinityengine/affinity/shared/job/tasks/afterimport"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
	"github.com/affinityengine/affinity/shared/job/tasks/refresh"
)

// auditTime is how long a task compares. It is less than the ten minutes after
// which Cloud Tasks gives up a task.
const auditTime = 8 * time.Minute

// nightlySample is the number of users of each app in a nightly audit.
const nightlySample = 200

// enqueueAudit enqueues the audit of an app, at most once a night.
func (h handler) enqueueAudit(ctx context.Context, app string, night job.Night, delay time.Duration) error {
	task, err := audit.Task(app, night.Date, nightlySample)
	if err != nil {
		return err
	}
	task.Delay = delay
	return h.Queue.Create(ctx, task)
}

// audit compares the profiles of a sample of an app's users with the log. It
// reports differences as log lines and metrics.
func (h handler) audit(ctx context.Context, request audit.Request, _ int) (*audit.Report, error) {
	app, err := h.Config.App(ctx, request.App)
	if err != nil {
		return nil, gone(err)
	}
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	report, err := audit.New(audit.RowsOf(h.Store), h.Profiles, h.Config).Sample(ctx, app, request.Sample)
	if err != nil {
		return nil, err
	}
	report.Log(ctx, h.Log, h.Metrics, app.ID)
	if report.Compared < report.Sampled {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "audit ran out of time", slog.String("app", app.ID),
			slog.Int("sampled", report.Sampled), slog.Int("compared", report.Compared))
	}
	report.Differences = nil // they are in the log
	return &report, nil
}

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
	last, err := h.Store.Crowd.LastImport(ctx, request.App, request.Index)
	if err != nil || last.IsZero() {
		return answer, err
	}
	if request.Index != "" {
		answer.Crowd, err = h.buildLoaded(ctx, request, last)
		answer.Started = answer.Crowd != ""
		return answer, gone(err)
	}
	if wait := last.Add(afterimport.Quiet).Sub(h.Now()); wait > 0 {
		return answer, h.lookLater(ctx, request, last, min(wait, afterimport.Quiet))
	}
	var failed [2]error // neither job waits for the other
	answer.Recompute, failed[0] = h.foldImported(ctx, request, last)
	answer.Crowd, failed[1] = h.buildImported(ctx, request, last)
	answer.Started = answer.Recompute != "" || answer.Crowd != ""
	return answer, gone(errors.Join(failed[:]...))
}

// foldImported starts the recompute that folds what an app's last import brought. While
// another recompute of the app is under way it starts none, and looks again later.
func (h handler) foldImported(ctx context.Context, request afterimport.Request, last time.Time) (id string, err error) {
	j, err := h.Recompute.StartImport(ctx, request.App, last)
	if errors.Is(err, recompute.ErrBusy) {
		return "", h.waitFor(ctx, "recompute", request, last)
	}
	return j.ID, err
}

// buildImported starts the build of crowd statistics that follows an app's last import,
// if there is anything to build. While another one is under way it starts none, and looks
// again later.
func (h handler) buildImported(ctx context.Context, request afterimport.Request, last time.Time) (id string, err error) {
	j, err := h.Crowd.StartImport(ctx, request.App, last)
	switch {
	case errors.Is(err, crowdbuild.ErrNoObjects):
		return "", nil
	case errors.Is(err, crowdbuild.ErrBusy):
		return "", h.waitFor(ctx, "build of crowd statistics", request, last)
	}
	return j.ID, err
}

// waitFor looks again later, once another job may have ended.
func (h handler) waitFor(ctx context.Context, what string, request afterimport.Request, last time.Time) error {
	if request.Exhausted(last) {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "an import is left to the nightly round, another "+what+" does not end",
			slog.String("app", request.App))
		return nil
	}
	return h.lookLater(ctx, request, last, afterimport.Quiet)
}

// buildLoaded starts the build of crowd statistics that follows the last load of objects into
// an index, if one is needed. While the load or another build goes on, it looks again later.
func (h handler) buildLoaded(ctx context.Context, request afterimport.Request, last time.Time) (id string, err error) {
	ended := !h.Now().Before(last.Add(afterimport.Quiet))
	j, err := h.Crowd.StartLoad(ctx, request.App, request.Index, last, ended)
	if !errors.Is(err, crowdbuild.ErrBusy) {
		return j.ID, err
	}
	if request.Exhausted(last) {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "a load of objects is left to the nightly round, another build of crowd "+
			"statistics does not end", slog.String("app", request.App), slog.String("index", request.Index))
		return "", nil
	}
	return "", h.lookLater(ctx, request, last, afterimport.Quiet)
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

// bandsStarted is the answer to the task that follows a change of numeric bands: the
// re-enrichment, or nothing if the bands are applied already.
type bandsStarted struct {
	Reenrich string `json:"reenrich,omitempty"`
}

// banded starts the re-enrichment that gives logged events the app's numeric bands.
func (h handler) banded(ctx context.Context, request bands.Request, _ int) (bandsStarted, error) {
	j, err := h.Reenrich.StartBands(ctx, request.App, false)
	if errors.Is(err, reenrich.ErrNoBands) {
		return bandsStarted{}, nil
	}
	return bandsStarted{j.ID}, gone(err)
}

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

// delta adds the users who have changed to the parts of an app's segments.
func (h handler) delta(ctx context.Context, request segmentbuild.Request, _ int) (any, error) {
	outcome, err := h.Segments.Delta(ctx, request)
	return outcome, gone(err)
}

// clean drops the parts of an app's segments that nothing names any more.
func (h handler) clean(ctx context.Context, request segmentbuild.Request, _ int) (map[string]bool, error) {
	return map[string]bool{"cleaned": true}, gone(h.Segments.Clean(ctx, request))
}
