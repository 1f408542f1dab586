// Package reenrich gives events of the log the filters of objects that the catalog
// has learned of since: for a catalog that comes late.
//
// A job goes over the log of an app, within its retention, and picks the events of
// which the catalog did not know all objects when they were logged. Where it knows
// one more of them now, the event is published as a message of its own kind, with
// its place in the log and its objects as they are now; process then puts it in
// the place of its row and refreshes the profile, as for any event that comes
// late. An event gets the filters that all of its objects have by then.
//
// It is separate from process because it is work over a whole app, which may die
// anywhere and goes on: publishing twice changes nothing. The jobs are those of
// package job and lie in Firestore, in a collection of this package:
//
//	apps/{app}/reenrichments/{id}
package reenrich

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/affinityengine/affinity/shared/affinity"
	"github.com/affinityengine/affinity/shared/job"
)

// Collection is where the jobs lie under an app.
const Collection = "reenrichments"

// The kinds of jobs: those that publish what they resolve, and those that only
// count it.
const (
	Publishing = "publish"
	DryRun     = "dryRun"
)

// lanes bounds how many shards are gone over at a time: what they publish stands
// in one queue with the events that come in.
const lanes = 4

// Runner starts jobs and carries out their tasks. Safe for concurrent use.
type Runner struct{ *job.Runner }

// New completes a runner; name and work are set here.
func New(r job.Runner, work Work) *Runner {
	r.Name, r.Work = "reenrich", work
	return &Runner{job.New(r)}
}

// StartOne starts a job, unless the app has one that has not ended: then that one
// is returned, of whatever kind it is, and goes on if its tasks were lost.
func (r *Runner) StartOne(ctx context.Context, appID string, dryRun bool) (job.Job, error) {
	app, err := r.Apps.App(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("start reenrich: %w", err)
	}
	j, err := r.leaveOne(ctx, appID)
	if err == nil {
		return j, r.ResumeJob(ctx, j)
	}
	if !errors.Is(err, job.ErrNotFound) {
		return job.Job{}, err
	}
	j = job.Job{
		App: appID, ID: fmt.Sprintf("reenrich-%s-%s", r.Now().UTC().Format("20060102T150405Z"), strings.ToLower(rand.Text()[:6])),
		Kind: Publishing, Lanes: lanes, RetentionDays: app.RetentionDays,
	}
	if dryRun {
		j.Kind = DryRun
	}
	window := affinity.Window{Now: r.Now().UnixMilli(), RetentionDays: app.RetentionDays}
	if from := window.From(); from > 0 {
		j.Since = time.UnixMilli(from)
	}
	if j, err = r.Create(ctx, j); err != nil {
		return job.Job{}, err
	}
	// Of two that were started at once the later one to look sees both.
	first, err := r.leaveOne(ctx, appID)
	switch {
	case errors.Is(err, job.ErrNotFound): // cancelled already
		return r.Jobs.Job(ctx, appID, j.ID)
	case err != nil:
		return job.Job{}, err
	case first.ID != j.ID:
		return first, r.ResumeJob(ctx, first)
	}
	return j, r.OrderPlan(ctx, j, app, 0)
}

// leaveOne supersedes all unfinished jobs of an app but the one that began first,
// and returns that; job.ErrNotFound if there is none.
func (r *Runner) leaveOne(ctx context.Context, appID string) (job.Job, error) {
	unfinished, err := r.Jobs.Unfinished(ctx, appID)
	if err != nil {
		return job.Job{}, fmt.Errorf("look for a reenrich under way: %w", err)
	}
	if len(unfinished) == 0 {
		return job.Job{}, job.ErrNotFound
	}
	first := slices.MaxFunc(unfinished, job.NewestFirst)
	for _, other := range unfinished {
		if other.ID == first.ID {
			continue
		}
		if _, err := r.Supersede(ctx, other, "reenrich "+first.ID+" is under way already"); err != nil {
			return job.Job{}, err
		}
	}
	return first, nil
}
