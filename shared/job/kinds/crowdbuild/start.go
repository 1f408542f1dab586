package crowdbuild

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/rank/crowd"
	"github.com/affinityengine/affinity/shared/wire"
)

// ErrNoObjects means that no index to build has objects.
var ErrNoObjects = errors.New("the catalog holds no objects")

// StartManual starts a build of an index, or of all indexes of the app if index
// is "". ErrNoObjects if there is nothing to build.
func (r *Runner) StartManual(ctx context.Context, app, index string) (job.Job, error) {
	return r.start(ctx, app, index, manual, job.NewID(string(manual), r.Now()))
}

// StartImport starts the build that follows an app's last import, at the given
// time. It is idempotent. If a build of all indexes has started since, StartImport
// returns that one. It returns ErrBusy, and the build, while one that started before is
// unfinished: builds that supersede each other with each import might never end.
func (r *Runner) StartImport(ctx context.Context, app string, at time.Time) (job.Job, error) {
	indexes, err := r.indexes(ctx, app, "")
	if err != nil {
		return job.Job{}, fmt.Errorf("start crowd: %w", err)
	}
	latest, err := r.Jobs.List(ctx, app, maxListed)
	if err != nil {
		return job.Job{}, fmt.Errorf("list the latest crowd jobs: %w", err)
	}
	id := string(Import) + "-" + strconv.FormatInt(at.UnixMilli(), 10)
	whole := job.Job{Params: Params{Indexes: indexes}}
	for _, j := range latest {
		switch {
		case !covers(j, whole) || j.State.Ended() && j.State != job.Done:
		case j.StartedAt.After(at) || j.ID == id:
			return j, r.ResumeJob(ctx, j)
		case !j.State.Ended():
			return j, fmt.Errorf("start crowd: %w", ErrBusy)
		}
	}
	return r.start(ctx, app, "", Import, id)
}

// ErrBusy means that a build of the index, or of all of them, is under way, or that objects are
// still loaded.
var ErrBusy = errors.New("the index is busy")

// maxKnown is the largest number of objects of which StartLoad finds out whether an index has
// outgrown them.
const maxKnown = 100_000

// StartLoad starts the build that follows a load of objects into an index, at the given time:
// at once if the index has no statistics, and once the load has ended if the catalog has a
// tenth more objects than they know. So a catalog in steady change leaves builds to the night.
// It is idempotent. The job is empty if no build is needed. ErrBusy: ask again later.
func (r *Runner) StartLoad(ctx context.Context, app, index string, at time.Time, ended bool) (job.Job, error) {
	m, _, err := crowd.ReadManifest(ctx, r.work.Store.Crowd, r.Log, app, index)
	if errors.Is(err, wire.ErrNewer) {
		return job.Job{}, nil
	}
	if err != nil {
		return job.Job{}, fmt.Errorf("start crowd: %w", err)
	}
	unfinished, err := r.Jobs.Unfinished(ctx, app)
	if err != nil {
		return job.Job{}, fmt.Errorf("list the unfinished crowd jobs: %w", err)
	}
	hash := sha256.Sum256([]byte(index))
	id := fmt.Sprintf("%s-%d-%x", Import, at.UnixMilli(), hash[:4])
	for _, j := range unfinished {
		if j.ID != id && covers(j, job.Job{Params: Params{Indexes: []string{index}}}) {
			return job.Job{}, ErrBusy
		}
	}
	if m.Current.Name != "" {
		if !ended {
			return job.Job{}, ErrBusy
		}
		grown, err := r.outgrown(ctx, app, index, m.Current.Objects)
		if err != nil || !grown {
			return job.Job{}, err
		}
	}
	j, err := r.start(ctx, app, index, Import, id)
	if errors.Is(err, ErrNoObjects) {
		return job.Job{}, nil
	}
	return j, err
}

// outgrown reports whether an index has a tenth more objects than its statistics know. It reads
// no more keys than that takes.
func (r *Runner) outgrown(ctx context.Context, app, index string, known int) (bool, error) {
	if known > maxKnown {
		return false, nil
	}
	enough := errors.New("enough")
	left := known + known/10
	err := r.work.Store.Catalog.ScanObjectIDs(ctx, app, index, func(string) error {
		if left--; left < 0 {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return true, nil
	}
	return false, err
}

// maxListed is how many of the latest jobs StartImport looks at.
const maxListed = 10

// Nightly starts the night's build of all indexes of an app, if it has objects. It is
// idempotent.
func (r *Runner) Nightly(ctx context.Context, app string, night job.Night) error {
	_, err := r.start(ctx, app, "", nightly, string(nightly)+"-"+night.Date)
	if errors.Is(err, ErrNoObjects) {
		return nil
	}
	return err
}

// start creates a job, supersedes the unfinished jobs that build nothing more,
// and enqueues the plan task. If the process dies in between, the next start of
// the same job completes these steps.
func (r *Runner) start(ctx context.Context, appID, index string, trigger Trigger, id string) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start crowd: %w", err)
	}
	indexes, err := r.indexes(ctx, appID, index)
	if err != nil {
		return job.Job{}, fmt.Errorf("start crowd: %w", err)
	}
	indexes, share, err := r.share(ctx, appID, indexes)
	if err != nil {
		return job.Job{}, fmt.Errorf("start crowd: %w", err)
	}
	now := r.Now()
	return r.startWith(ctx, app, job.Job{App: appID, ID: id, Concurrency: concurrency, Params: Params{
		Trigger: trigger, Indexes: indexes, Generation: crowd.GenerationName(now, id),
		AsOf:          job.Stamp(now.Truncate(time.Millisecond)),
		RetentionDays: app.RetentionDays, ScoringVersion: app.ScoringVersion,
		HalfLife: app.Strategy.RankingOrDefault().Popularity.HalfLife.Millis(), Share: share,
	}}, "crowd %s takes its place")
}

// startWith starts a job, or completes its start. reason is a format in which %s
// stands for the id of the job that supersedes another one.
func (r *Runner) startWith(ctx context.Context, app config.App, j job.Job, reason string) (job.Job, error) {
	j, err := r.Create(ctx, j, 0)
	if err != nil || j.State.Ended() {
		return j, err
	}
	unfinished, err := r.Jobs.Unfinished(ctx, app.ID)
	if err != nil {
		return j, fmt.Errorf("list the unfinished crowd jobs: %w", err)
	}
	for _, other := range unfinished {
		older := job.NewestFirst(j, other) < 0
		switch {
		case other.ID == j.ID:
		case older && covers(j, other):
			if _, err := r.Supersede(ctx, other, fmt.Sprintf(reason, j.ID)); err != nil {
				return j, err
			}
		case !older && covers(other, j):
			return r.Supersede(ctx, j, fmt.Sprintf(reason, other.ID))
		}
	}
	if j.State != job.Planning {
		return j, r.ResumeJob(ctx, j)
	}
	return j, r.EnqueuePlan(ctx, j, app, 0)
}

// covers reports whether a job builds all indexes that another one builds.
func covers(j, other job.Job) bool {
	built := job.ParamsOf[Params](j).Indexes
	return !slices.ContainsFunc(job.ParamsOf[Params](other).Indexes, func(index string) bool {
		return !slices.Contains(built, index)
	})
}

// indexes returns the indexes to build: the given one, or all that have objects
// or statistics.
func (r *Runner) indexes(ctx context.Context, app, index string) ([]string, error) {
	cataloged, err := r.work.Store.Catalog.CatalogIndexes(ctx, app)
	if err != nil {
		return nil, err
	}
	built, err := r.work.Store.Crowd.CrowdIndexes(ctx, app)
	if err != nil {
		return nil, err
	}
	all := append(cataloged, built...)
	slices.Sort(all)
	all = slices.Compact(all)
	if index != "" {
		all = slices.DeleteFunc(all, func(other string) bool { return other != index })
	}
	if len(all) == 0 {
		return nil, ErrNoObjects
	}
	return all, nil
}

// share returns the share of users to read, by what the last builds have read. It
// leaves out indexes whose statistics a newer version of the engine has built. The
// error is wire.ErrNewer if none remains.
func (r *Runner) share(ctx context.Context, app string, indexes []string) (left []string, share float64, err error) {
	read := 0.0
	var newer error
	for _, index := range indexes {
		m, _, err := crowd.ReadManifest(ctx, r.work.Store.Crowd, r.Log, app, index)
		if errors.Is(err, wire.ErrNewer) {
			r.Log.LogAttrs(ctx, slog.LevelWarn, "no build of an index, a newer version of the engine has built it",
				slog.String("app", app), slog.String("index", index), slog.Any("error", err))
			newer = err
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		left = append(left, index)
		if m.Current.Share > 0 {
			read = max(read, float64(m.Current.Read)/m.Current.Share)
		}
	}
	if len(left) == 0 {
		return nil, 0, newer
	}
	return left, min(1, float64(r.work.MaxEvents)/max(read, 1)), nil
}

// sample replaces an unfinished job by one that reads a share of the users.
func (r *Runner) sample(ctx context.Context, j job.Job, share float64) error {
	app, err := r.Config.App(ctx, j.App)
	if err != nil {
		return fmt.Errorf("sample users for %s: %w", j.ID, err)
	}
	p := job.ParamsOf[Params](j)
	id := j.ID + "-sampled"
	p.Share, p.Generation = min(share, maxShare), crowd.GenerationName(r.Now(), id)
	const reason = "the app has too many events: crowd %s reads a sample of the users"
	if _, err := r.startWith(ctx, app, job.Job{App: j.App, ID: id, Concurrency: concurrency, Params: p},
		reason); err != nil {
		return err
	}
	// The job of the sample may have ended before the process could supersede this
	// one.
	_, err = r.Supersede(ctx, j, fmt.Sprintf(reason, id))
	return err
}

// maxShare is the largest share of a sample. It is below 1, so that a job knows
// that it reads a sample.
const maxShare = 0.999
