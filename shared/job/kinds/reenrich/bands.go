package reenrich

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/job/tasks/bands"
)

// When the numeric bands of an index change, the events in the log have filters of
// earlier bands. Two jobs replace them. The first runs once every process knows the
// change. A message that a process began to apply before may still write earlier bands,
// so a second job follows after the longest time that a delivery may take. Each row of
// the log names the version of its bands, so the second job publishes only what the
// first one has missed. Only then are the bands applied (config.IndexBands); until then
// the nightly round starts a job again.

// maxDelivery is how long process may work on a message: the timeout of the function is
// 540 s.
const maxDelivery = 10 * time.Minute

// ErrNoBands reports that the app has no numeric bands to apply.
var ErrNoBands = errors.New("the app has no numeric bands that are to be applied")

// BandsVersion is the version of an index's numeric bands; see config.IndexBands.
type BandsVersion struct {
	Index   string `firestore:"index"`
	Version int64  `firestore:"version"`
}

// StartBands starts a job that gives logged events the numeric bands that are not
// applied yet, or resumes the one that does it already. With all, it takes all indexes
// with bands: events that were brought in with their filters may have others. It returns
// ErrNoBands if there is nothing to apply.
func (r *Runner) StartBands(ctx context.Context, appID string, all bool) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start reenrich: %w", err)
	}
	due := app.NumericBands.Unapplied()
	if all {
		for index, b := range app.NumericBands {
			due[index] = b.Version
		}
	}
	if len(due) == 0 {
		return job.Job{}, ErrNoBands
	}
	p := Params{LogWindow: job.WindowOf(r.Now(), app.RetentionDays), Bands: versions(due)}
	p.Last = r.Clock().Sub(app.ChangedAt) >= r.Propagation+maxDelivery
	unfinished, err := r.Jobs.Unfinished(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("list the unfinished reenrich jobs: %w", err)
	}
	for _, j := range unfinished {
		if q := job.ParamsOf[Params](j); j.Kind == Banding && slices.Equal(q.Bands, p.Bands) && (q.Last || !p.Last) {
			return j, r.ResumeJob(ctx, j)
		}
	}
	return r.start(ctx, app, Banding, p)
}

// versions returns versions by index, sorted.
func versions(of map[string]int64) []BandsVersion {
	var list []BandsVersion
	for index, version := range of {
		list = append(list, BandsVersion{index, version})
	}
	slices.SortFunc(list, func(a, b BandsVersion) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// versionSum returns the sum of the versions of a job's bands, which grows with each change.
func versionSum(j job.Job) (sum int64) {
	for _, v := range job.ParamsOf[Params](j).Bands {
		sum += v.Version
	}
	return sum
}

// Versions returns the versions of the bands of a job, by index; nil if it has none.
func (p Params) Versions() map[string]int64 {
	var all map[string]int64
	for _, v := range p.Bands {
		if all == nil {
			all = map[string]int64{}
		}
		all[v.Index] = v.Version
	}
	return all
}

// Nightly starts the job of bands that a lost task or a failed job of an app has left.
func (r *Runner) Nightly(ctx context.Context, app string, _ job.Night) error {
	_, err := r.StartBands(ctx, app, false)
	if errors.Is(err, ErrNoBands) {
		return nil
	}
	return err
}

var _ job.Closing = Work{}

// Close follows a job of bands that has ended well: the last one applies the bands, one
// before it enqueues the task that starts the last.
func (w Work) Close(ctx context.Context, j job.Job) error {
	if j.Kind != Banding || j.State != job.Done {
		return nil
	}
	p := job.ParamsOf[Params](j)
	if p.Last {
		err := w.Bands.ApplyBands(ctx, j.App, p.Versions())
		if errors.Is(err, config.ErrNotFound) {
			return nil // the app has been deleted
		}
		return err
	}
	task, err := bands.Last(j.App, j.ID, maxDelivery)
	if err != nil {
		return err
	}
	if err := w.Queue.Create(ctx, task); err != nil {
		return fmt.Errorf("enqueue the last job of numeric bands: %w", err)
	}
	return nil
}
