package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/affinityengine/affinity/shared/job/audit"
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
