package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job/audit"
	"github.com/affinityengine/affinity/shared/web/httpapi"
)

// auditTime is how long a task compares. It is less than the ten minutes after
// which Cloud Tasks gives up a task.
const auditTime = 8 * time.Minute

// nightlySample is the number of users of each app in a nightly audit.
const nightlySample = 200

// enqueueAudits enqueues one audit of each app, at most once a date. An audit
// runs half of spread after the recompute of its app has started.
func (h handler) enqueueAudits(ctx context.Context, apps []string, spread time.Duration) error {
	date := h.Now().UTC().Format(time.DateOnly)
	var faults []error
	for i, app := range apps {
		task, err := audit.Task(app, date, nightlySample)
		if err != nil {
			return err
		}
		task.Delay = spread/2 + spread/time.Duration(len(apps))*time.Duration(i)
		faults = append(faults, h.Queue.Create(ctx, task)) // a fault of one app does not stop the others
	}
	return errors.Join(faults...)
}

// audit compares the profiles of a sample of an app's users with the log. It
// reports differences as log lines and metrics.
func (h handler) audit(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	request, err := audit.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	app, err := h.Config.App(r.Context(), request.App)
	if errors.Is(err, config.ErrNotFound) {
		return h.drop(w, r, err)
	}
	if err != nil {
		return fmt.Errorf("audit %s: %w", request.App, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), auditTime)
	defer cancel()
	report, err := audit.New(h.Store, h.Profiles, h.Config).Sample(ctx, app, request.Sample)
	if err != nil {
		return err
	}
	report.Log(ctx, h.Log, h.Metrics, app.ID)
	if report.Compared < report.Sampled {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "audit ran out of time", slog.String("app", app.ID),
			slog.Int("sampled", report.Sampled), slog.Int("compared", report.Compared))
	}
	report.Differences = nil // they are in the log
	return httpapi.WriteJSON(w, http.StatusOK, report)
}
