package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/affinityengine/affinity/shared/audit"
	"github.com/affinityengine/affinity/shared/config"
	"github.com/affinityengine/affinity/shared/httpapi"
)

// auditTime is how long a task compares: less than the ten minutes that a task is
// given.
const auditTime = 8 * time.Minute

// nightlySample is how many users of each app are audited in a night.
const nightlySample = 200

// orderAudits orders the audits of a night, once for a date, spread over a time
// and each a while after its app's recompute has begun.
func (h handler) orderAudits(ctx context.Context, apps []string, spread time.Duration) error {
	date := h.Now().UTC().Format(time.DateOnly)
	var faults []error
	for i, app := range apps {
		task, err := audit.Task(app, date, nightlySample)
		if err != nil {
			return err
		}
		task.Delay = spread/2 + spread/time.Duration(len(apps))*time.Duration(i)
		faults = append(faults, h.Queue.Create(ctx, task)) // one app's fault does not keep the others back
	}
	return errors.Join(faults...)
}

// audit compares profiles of a sample of an app's users with the log. Whoever
// watches the engine learns of differences from the log lines and the metrics.
func (h handler) audit(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxBody)
	if err != nil {
		return err
	}
	order, err := audit.Decode(body)
	if err != nil {
		return h.drop(w, r, err)
	}
	app, err := h.Config.App(r.Context(), order.App)
	if errors.Is(err, config.ErrNotFound) {
		return h.drop(w, r, err)
	}
	if err != nil {
		return fmt.Errorf("audit %s: %w", order.App, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), auditTime)
	defer cancel()
	report, err := audit.New(h.Store, h.Profiles, h.Config).Sample(ctx, app, order.Sample)
	if err != nil {
		return err
	}
	report.Log(ctx, h.Log, h.Metrics, app.ID)
	if report.Compared < report.Sampled {
		h.Log.LogAttrs(ctx, slog.LevelWarn, "audit ran out of time", slog.String("app", app.ID),
			slog.Int("sampled", report.Sampled), slog.Int("compared", report.Compared))
	}
	report.Differences = nil // told already
	return httpapi.WriteJSON(w, http.StatusOK, report)
}
