// Package daterows keeps the table dated right, which lists the objects of an index by
// date. Writers of objects keep it from the moment at which they know that a feed names
// an attribute. A job of this package does the rest for one index: it inserts the date
// rows that objects lack, such as those of a catalog that was there before the feed,
// and then deletes those that no object confirms, such as those of a writer that died.
//
// A job starts when a feed names a new attribute, and every night. It reads the index
// in the order of its keys, and its checkpoints are places in it. Wherever a
// job stops, the next one begins at the start and changes only what is wrong. Package job
// runs the jobs, which lie in a collection of this package:
//
//	apps/{app}/dateRows/{id}
package daterows

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/catalog"
	"github.com/affinityengine/affinity/shared/job"
	"github.com/affinityengine/affinity/shared/store"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("dateRows")

// The kinds of jobs, which begin their ids.
const (
	backfill = "backfill" // a feed names a new attribute
	Nightly  = "nightly"
)

// Params are the parameters of a job.
type Params struct {
	Index string `firestore:"index"`
}

var _ job.Params = Params{}

// LogAttrs returns the index.
func (p Params) LogAttrs() []slog.Attr { return []slog.Attr{slog.String("index", p.Index)} }

// Counts counts the work of a job.
type Counts struct {
	Objects  int64 // objects read
	Inserted int64 // date rows that were missing, or had old filters
	Undated  int64 // attributes of objects that hold no readable date: these objects are in no feed by that attribute
	Rows     int64 // date rows read
	Deleted  int64 // date rows that their objects did not confirm
	Faulty   int64 // objects that could not be read
}

// Settings reads the settings of indexes.
type Settings interface {
	// IndexSettings returns config.ErrNotFound for an index without settings.
	IndexSettings(ctx context.Context, app, index string) (catalog.Settings, error)
}

// Runner starts jobs and runs their tasks. It is safe for concurrent use.
type Runner struct {
	*job.Runner
	store *store.Store
	work  *work
}

// New returns the runner. It sets the name, the work and the users of r.
func New(r job.Runner, s *store.Store, settings Settings) *Runner {
	work := &work{store: s, settings: settings, partRows: partRows}
	r.Name, r.Work, r.Users = "daterows", work, nil
	runner := &Runner{job.New(r), s, work}
	work.Runner = runner.Runner
	return runner
}

// StartBackfill starts the job that a new attribute of an index needs, once every
// function knows the attribute. If one has started since the attribute was named, and
// has neither failed nor been cancelled, StartBackfill returns that job.
func (r *Runner) StartBackfill(ctx context.Context, appID, index, attribute string) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start daterows: %w", err)
	}
	switch j, err := r.Current(ctx, app, index, attribute); {
	case err == nil && j.State == job.Done:
		return j, nil
	case err == nil && !j.State.Ended():
		return j, r.ResumeJob(ctx, j)
	case err != nil && !errors.Is(err, job.ErrNotFound):
		return job.Job{}, err
	}
	return r.start(ctx, app, index, backfill, job.NewID(backfill, r.Now()))
}

// maxListed is how many of an app's latest jobs Current looks at: those of some nights
// for as many indexes as feeds can name.
const maxListed = 200

// Current returns the job by which an attribute of an index has its date rows: one that
// is done and started after a feed named the attribute, or else the latest one since
// then. It returns job.ErrNotFound if there is none.
func (r *Runner) Current(ctx context.Context, app config.App, index, attribute string) (job.Job, error) {
	since, dated := app.Dates[index][attribute]
	if !dated {
		return job.Job{}, fmt.Errorf("date rows of %s/%s by %s: %w", app.ID, index, attribute, job.ErrNotFound)
	}
	latest, err := r.Jobs.List(ctx, app.ID, maxListed)
	if err != nil {
		return job.Job{}, fmt.Errorf("list the latest jobs of date rows: %w", err)
	}
	latest = slices.DeleteFunc(latest, func(j job.Job) bool {
		return job.ParamsOf[Params](j).Index != index || j.StartedAt.Before(since)
	})
	if len(latest) == 0 {
		return job.Job{}, fmt.Errorf("date rows of %s/%s by %s: %w", app.ID, index, attribute, job.ErrNotFound)
	}
	current := latest[0]
	if i := slices.IndexFunc(latest, func(j job.Job) bool { return j.State == job.Done }); i >= 0 {
		current = latest[i]
	}
	return r.Find(ctx, app.ID, current.ID)
}

// start creates the job of an index, supersedes the unfinished ones before it, and
// enqueues its plan task. If the process dies in between, the next start of the same
// job completes these steps.
func (r *Runner) start(ctx context.Context, app config.App, index, kind, id string) (job.Job, error) {
	j, err := r.Create(ctx, job.Job{App: app.ID, ID: id, Kind: kind, Concurrency: 1, Params: Params{Index: index}}, 0)
	if err != nil || j.State.Ended() {
		return j, err
	}
	unfinished, err := r.Jobs.Unfinished(ctx, app.ID)
	if err != nil {
		return j, fmt.Errorf("list the unfinished jobs of date rows: %w", err)
	}
	for _, other := range unfinished {
		switch {
		case other.ID == j.ID || job.ParamsOf[Params](other).Index != index:
		case job.NewestFirst(j, other) < 0:
			if _, err := r.Supersede(ctx, other, fmt.Sprintf("%s takes its place", j.ID)); err != nil {
				return j, err
			}
		default: // another start came later by its clock
			if _, err := r.Supersede(ctx, j, fmt.Sprintf("%s takes its place", other.ID)); err != nil {
				return j, err
			}
			return other, r.ResumeJob(ctx, other)
		}
	}
	if j.State != job.Planning {
		return j, r.ResumeJob(ctx, j)
	}
	return j, r.EnqueuePlan(ctx, j, app, 0)
}

// Nightly starts the night's jobs of an app: for each index that has dates or date rows. It
// is idempotent.
func (r *Runner) Nightly(ctx context.Context, appID string, night job.Night) error {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return fmt.Errorf("start daterows: %w", err)
	}
	indexes, err := r.store.Catalog.DatedIndexes(ctx, appID)
	if err != nil {
		return err
	}
	indexes = append(indexes, slices.Collect(maps.Keys(app.Dates))...)
	slices.Sort(indexes)
	unfinished, err := r.Jobs.Unfinished(ctx, appID)
	if err != nil {
		return fmt.Errorf("list the unfinished jobs of date rows: %w", err)
	}
	var faults []error
	for _, index := range slices.Compact(indexes) {
		if slices.ContainsFunc(unfinished, func(j job.Job) bool { return job.ParamsOf[Params](j).Index == index }) {
			continue // Resume enqueues what it waits for
		}
		_, err := r.start(ctx, app, index, Nightly, nightlyID(night, index))
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// nightlyID names the job of an index and a night. An index's name is no part of an id.
func nightlyID(night job.Night, index string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(index)) // never fails
	return fmt.Sprintf("%s-%s-%016x", Nightly, night.Date, h.Sum64())
}
