// Package reenrich resolves logged events again whose objects entered the
// catalog later, for an app that imports its catalog after its events.
//
// A job reads the log of an app, within its retention, and picks the events
// that had unknown objects when process logged them. If the catalog now knows
// at least one more object of an event, the job publishes the event again, with
// its key in the log and the current filters of all its objects. Process then
// replaces the event's row and refreshes the profile, as for any late event.
//
// A change of numeric bands starts a job too. It also picks the events with objects of
// the changed indexes whose filters are of earlier bands: see bands.go.
//
// It is separate from process because a job covers a whole app, may die
// anywhere and resumes from a checkpoint. To publish an event twice changes
// nothing. Package job runs the jobs. They lie in a collection of this package:
//
//	apps/{app}/reenrichments/{id}
package reenrich

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/affinityengine/affinity/shared/app/config"
	"github.com/affinityengine/affinity/shared/job"
)

// Collection names the collection of the jobs under an app.
var Collection = job.NewCollection[Params, Counts]("reenrichments")

// The kinds of jobs. A publishing job publishes the events that it resolves; a
// dry run only counts them. A job of bands is a publishing one that also picks events
// with filters of earlier bands.
const (
	Publishing = "publish"
	DryRun     = "dryRun"
	Banding    = "bands"
)

// Params are the parameters of a job.
type Params struct {
	job.LogWindow
	// Bands are the versions of numeric bands that a job of bands gives to events.
	Bands []BandsVersion `firestore:"bands,omitempty"`
	// Last says that no message with earlier bands is under way when the job starts.
	Last bool `firestore:"last,omitempty"`
}

var _ job.Params = Params{}

// LogAttrs returns nothing: the log line needs no more than the job's id.
func (Params) LogAttrs() []slog.Attr { return nil }

// Counts counts what a job has read and resolved.
type Counts struct {
	Users        int64 // processed
	Known        int64 // processed users with events in the window
	Events       int64 // rows read
	Resolved     int64 // events that the job published, or would publish if it were not a dry run
	StillUnknown int64 // events whose unknown objects the catalog still does not know
	Faulty       int64 // rows whose original cannot be read
}

// concurrency bounds how many shards have tasks at a time, because their
// messages share a topic with the events of clients.
const concurrency = 4

// Runner starts jobs and runs their tasks. It is safe for concurrent use.
type Runner struct{ *job.Runner }

// New returns the runner of re-enrichments. It sets the name and the work of r.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work = "reenrich", work
	return &Runner{job.New(r)}
}

// StartOne starts a job. If the app has an unfinished job of either kind,
// StartOne resumes and returns that job instead.
func (r *Runner) StartOne(ctx context.Context, appID string, dryRun bool) (job.Job, error) {
	app, err := r.Config.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start reenrich: %w", err)
	}
	j, err := r.elect(ctx, appID)
	if err == nil {
		return j, r.ResumeJob(ctx, j)
	}
	if !errors.Is(err, job.ErrNotFound) {
		return job.Job{}, err
	}
	kind := Publishing
	if dryRun {
		kind = DryRun
	}
	return r.start(ctx, app, kind, Params{LogWindow: job.WindowOf(r.Now(), app.RetentionDays)})
}

// start creates a job and returns the job of the app that continues: this one, or
// another that was created at the same time.
func (r *Runner) start(ctx context.Context, app config.App, kind string, p Params) (job.Job, error) {
	j := job.Job{App: app.ID, ID: job.NewID("reenrich", r.Now()), Kind: kind, Concurrency: concurrency, Params: p}
	j, err := r.Create(ctx, j, 0)
	if err != nil {
		return job.Job{}, err
	}
	winner, err := r.elect(ctx, app.ID)
	switch {
	case errors.Is(err, job.ErrNotFound): // cancelled already
		return r.Jobs.Job(ctx, app.ID, j.ID)
	case err != nil:
		return job.Job{}, err
	case winner.ID != j.ID:
		return winner, r.ResumeJob(ctx, winner)
	}
	return j, r.EnqueuePlan(ctx, j, app, 0)
}

// elect keeps one unfinished job of the app and supersedes the others. It keeps the
// newest job of bands, which does what every other kind does, or else the oldest job.
func (r *Runner) elect(ctx context.Context, appID string) (job.Job, error) {
	order := func(a, b job.Job) int {
		switch {
		case a.Kind == Banding && b.Kind == Banding:
			// Of two of one instant, the one with the later change.
			return cmp.Or(b.StartedAt.Compare(a.StartedAt), cmp.Compare(versionSum(b), versionSum(a)), job.NewestFirst(a, b))
		case a.Kind == Banding:
			return -1
		case b.Kind == Banding:
			return 1
		}
		return job.NewestFirst(b, a)
	}
	return r.Elect(ctx, appID, order, "reenrich %s does its work")
}
