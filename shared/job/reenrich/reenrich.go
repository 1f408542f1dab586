// Package reenrich gives logged events the filters of objects that the catalog
// has learned of since, for a catalog that is imported after the events.
//
// A job reads the log of an app, within its retention, and picks the events
// that had unknown objects when they were logged. If the catalog now knows one
// more object of an event, the job publishes the event as a message of a kind
// of its own, with its key in the log and its current objects. Process then
// replaces the event's row and refreshes the profile, as for any late event.
// The event gets the filters of all of its objects.
//
// It is separate from process because it is work over a whole app, which may
// die anywhere and is resumed: publishing an event twice changes nothing.
// Package job runs the jobs. They lie in a collection of this package:
//
//	apps/{app}/reenrichments/{id}
package reenrich

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/affinityengine/affinity/shared/job"
)

// Collection is where the jobs lie under an app.
var Collection = job.Collection{Name: "reenrichments", Decode: job.DecodeParams[Params]}

// The kinds of jobs: Publishing ones publish what they resolve, dry runs only
// count it.
const (
	Publishing = "publish"
	DryRun     = "dryRun"
)

// Params are the parameters of a job.
type Params struct{ job.LogWindow }

var _ job.Params = Params{}

// LogAttrs has nothing to say.
func (Params) LogAttrs() []slog.Attr { return nil }

// Counts are how much of the log a job has read, and what it found.
type Counts struct {
	Visited      int64 // users processed
	Users        int64 // of Visited, those with events in the window
	Events       int64 // rows read
	Resolved     int64 // events that were published, or would be in a dry run
	StillUnknown int64 // events of whose unknown objects none is known yet
	Unreadable   int64 // rows whose original cannot be read
}

// CountsOf names the counts of a job.
func CountsOf(c job.Counts) Counts {
	return Counts{
		Visited: c.Visited, Users: c.Users, Events: c.Events, Resolved: c.Changed, StillUnknown: c.Left, Unreadable: c.Faulty,
	}
}

func (c Counts) stored() job.Counts {
	return job.Counts{
		Visited: c.Visited, Users: c.Users, Events: c.Events, Changed: c.Resolved, Left: c.StillUnknown, Faulty: c.Unreadable,
	}
}

// maxInFlight bounds how many shards are processed at a time: what they publish
// shares a queue with the events of clients.
const maxInFlight = 4

// Runner starts jobs and runs their tasks. It is safe for concurrent use.
type Runner struct{ *job.Runner }

// New completes a runner: it sets the name and the work.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work = "reenrich", work
	return &Runner{job.New(r)}
}

// StartOne starts a job, unless the app has an unfinished one: then StartOne
// returns that job, of whatever kind it is, and resumes it if its tasks were
// lost.
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
	j = job.Job{
		App: appID, ID: job.NewID("reenrich", r.Now()), Kind: Publishing, MaxInFlight: maxInFlight,
		Params: Params{job.WindowOf(r.Now(), app.RetentionDays)},
	}
	if dryRun {
		j.Kind = DryRun
	}
	if j, err = r.Create(ctx, j); err != nil {
		return job.Job{}, err
	}
	winner, err := r.elect(ctx, appID)
	switch {
	case errors.Is(err, job.ErrNotFound): // cancelled already
		return r.Jobs.Job(ctx, appID, j.ID)
	case err != nil:
		return job.Job{}, err
	case winner.ID != j.ID:
		return winner, r.ResumeJob(ctx, winner)
	}
	return j, r.EnqueuePlan(ctx, j, app, 0)
}

// elect leaves the app the unfinished job that began first.
func (r *Runner) elect(ctx context.Context, appID string) (job.Job, error) {
	oldestFirst := func(a, b job.Job) int { return job.NewestFirst(b, a) }
	return r.Elect(ctx, appID, oldestFirst, "reenrich %s is under way already")
}
