// Package answers holds what several functions say in the same words: of a job that they
// start or list, and of segments that cannot be read.
package answers

import (
	"context"
	"log/slog"

	"github.com/affinityengine/affinity/shared/api"
	"github.com/affinityengine/affinity/shared/app/auditlog"
	"github.com/affinityengine/affinity/shared/backend"
	"github.com/affinityengine/affinity/shared/job"
)

// Jobs records what a function does with jobs, and says where they are in their queues.
type Jobs struct {
	Base backend.Base
	// Before returns how many unfinished jobs of all apps are before a job in its queue.
	Before func(ctx context.Context, j job.Job) (int, error)
}

// Record starts or cancels a job, and records it under the job's id.
func (a Jobs) Record(ctx context.Context, c auditlog.Change, do func() (job.Job, error)) (j job.Job, err error) {
	err = auditlog.New(a.Base.AuditLog()).Do(ctx, c, func() (auditlog.End, error) {
		j, err = do()
		return auditlog.End{Subject: j.ID}, err
	})
	return j, err
}

// Place returns the place of an unfinished job in its queue. Without it, as while a
// new deployment's index is built, an answer says everything else.
func (a Jobs) Place(ctx context.Context, j job.Job) api.Place {
	if !j.Due(a.Base.Now()) {
		return api.Place{}
	}
	before, err := a.Before(ctx, j)
	if err != nil {
		a.Base.Log.LogAttrs(ctx, slog.LevelWarn, "place of a job is unknown", slog.String("app", j.App),
			slog.String("job", j.ID), slog.Any("error", err))
		return api.Place{}
	}
	return api.Place{JobsBefore: &before}
}

// Wait returns the place of an unfinished job and the estimate of its end, for jobs
// that have no work but to visit users.
func (a Jobs) Wait(ctx context.Context, j job.Job) api.Wait {
	w := api.Wait{Place: a.Place(ctx, j)}
	if end := j.EndEstimate(a.Base.Now()); !end.IsZero() {
		at := api.At(end)
		w.EstimatedEndAt = &at
	}
	return w
}

// Shards counts the shards of a job.
func Shards(j job.Job) api.Shards {
	return api.Shards{Total: j.Totals.Shards, Done: j.Totals.Done, Failed: j.Totals.Failed}
}

// Finished is the time at which a job ended, or nil.
func Finished(j job.Job) *api.Time {
	if j.FinishedAt.IsZero() {
		return nil
	}
	at := api.At(j.FinishedAt)
	return &at
}
